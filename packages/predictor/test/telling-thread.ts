/**
 * A thread of the predictor that answers at once, with its own session's threads as the width; a
 * tensor is its own answer.
 */
import { parentPort, workerData } from "node:worker_threads"
import { type Answer, end, type Task, type ThreadOptions } from "../protocol.ts"

// The pool starts it with these.
const { session_threads } = workerData as ThreadOptions
const port = parentPort

port?.on("message", (task: Task | typeof end) => {
  if (task === end) return port.close()
  if (task.kind === "infer") {
    const outputs = task.inputs.map((input) => Float32Array.from(input))
    return port.postMessage({ kind: "inferred", outputs } satisfies Answer)
  }
  if (task.kind !== "prepare") return
  const seen = { width: session_threads, height: 1, sha256: "" }
  const answer: Answer = task.runs
    ? { kind: "predicted", ...seen, row: Float32Array.of(1) }
    : { kind: "prepared", ...seen, rgb: Uint8Array.of(1, 2, 3) }
  port.postMessage(answer)
})
port?.postMessage({ kind: "ready", batch: session_threads === 0 ? 0 : 4 })
