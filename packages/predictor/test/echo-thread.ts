/**
 * A fake predictor thread that responds at once. The width of its results is its number of session
 * threads; the result of a tensor is the tensor.
 */
import { parentPort, workerData } from "node:worker_threads"
import { end, type Task, type TaskResult, type ThreadOptions } from "../protocol.ts"

// The pool passes these options.
const { session_threads } = workerData as ThreadOptions
const port = parentPort

port?.on("message", (task: Task | typeof end) => {
  if (task === end) return port.close()
  if (task.kind === "infer") {
    const outputs = task.inputs.map((input) => Float32Array.from(input))
    return port.postMessage({ kind: "inferred", outputs } satisfies TaskResult)
  }
  if (task.kind !== "prepare") return
  const info = { width: session_threads, height: 1, sha256: "" }
  const result: TaskResult = task.runs
    ? { kind: "predicted", ...info, row: Float32Array.of(1) }
    : { kind: "prepared", ...info, rgb: Uint8Array.of(1, 2, 3) }
  port.postMessage(result)
})
port?.postMessage({ kind: "ready", batch: session_threads === 0 ? 0 : 4 })
