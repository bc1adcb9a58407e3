/** A thread of the pool: prepares images, and runs the network if it has a session. */
import { hash } from "node:crypto"
import { parentPort, workerData } from "node:worker_threads"
import { causeText } from "#schemas/cause-text.ts"
import { side } from "#schemas/image-side.ts"
import { yieldToOthers } from "#threads"
import {
  end,
  type Input,
  type StartupMessage,
  type Task,
  type TaskResult,
  type ThreadOptions,
} from "./protocol.ts"
import { resampler } from "./resample.ts"
import { openSession, type Session } from "./session.ts"

/** Loaded later, because they import sharp: a quarter of a thread's load time. */
const loadImageModules = () => Promise.all([import("./images/image.ts"), import("./heatmap.ts")])
type ImageModules = ReturnType<typeof loadImageModules>

const taskHandler = (
  options: ThreadOptions,
  session: Session | undefined,
  image_modules: ImageModules,
) => {
  const { resize, auto_orient, pixels_max } = options
  const resample = resampler(side)
  const image_options = { pixels_max, auto_orient }

  const prepare = async (image: Uint8Array, runs: boolean): Promise<TaskResult> => {
    const [{ decode, decodeFast, releaseBuffer }] = await image_modules
    const decoded = await (resize === "fast"
      ? decodeFast(image, image_options, side)
      : decode(image, image_options))
    if ("problem" in decoded) return { kind: "refused", ...decoded }
    const is_small = "is_small" in decoded && decoded.is_small
    const small = is_small ? decoded.rgb : resample(decoded, resize === "fast" ? "bicubic" : resize)
    const { width, height } = decoded
    const info = { width, height, sha256: hash("sha256", image, "hex") }
    if (small !== decoded.rgb) releaseBuffer(decoded.rgb)
    releaseBuffer(image)
    if (runs) {
      const [row = "The network was not run."] = await runNetwork([small])
      return { kind: "predicted", ...info, row }
    }
    // Copied, because the resampler reuses its memory for the next image.
    return { kind: "prepared", ...info, rgb: new Uint8Array(small) }
  }
  const runNetwork = async (inputs: ReadonlyArray<Input>) => {
    if (session === undefined) throw new Error("This thread has no session.")
    return session.run(inputs)
  }
  const infer = async (inputs: ReadonlyArray<Input>): Promise<TaskResult> => {
    return { kind: "inferred", outputs: await runNetwork(inputs) }
  }
  return async (task: Task): Promise<TaskResult> => {
    switch (task.kind) {
      case "prepare":
        return prepare(task.image, task.runs)
      case "infer":
        return infer(task.inputs)
      case "occlude": {
        const [, { occludeSquare }] = await image_modules
        const numbers = Array.from({ length: task.to - task.from }, (_, n) => task.from + n)
        return infer(numbers.map((square) => occludeSquare(task.rgb, square)))
      }
      case "heatmap": {
        const [, { renderHeatmap }] = await image_modules
        return { kind: "heatmap", png: Uint8Array.from(await renderHeatmap(task.rgb, task.drops)) }
      }
    }
  }
}

/** The buffers to transfer, each owned by this thread. */
const buffersOf = (result: TaskResult): Array<ArrayBuffer> => {
  const views = (): ReadonlyArray<Uint8Array | Float32Array | string> => {
    if (result.kind === "prepared") return [result.rgb]
    if (result.kind === "predicted") return [result.row]
    if (result.kind === "inferred") return result.outputs
    return result.kind === "heatmap" ? [result.png] : []
  }
  return views().flatMap((one) =>
    typeof one === "object" && one.buffer instanceof ArrayBuffer ? [one.buffer] : [],
  )
}

const start = async (port: NonNullable<typeof parentPort>, options: ThreadOptions) => {
  const { network, session_threads, batch_max, scale } = options
  const session =
    session_threads === 0
      ? undefined
      : await openSession({ network, threads: session_threads, batch_max, scale })
  // Not awaited: only the first image needs it, and the server starts in the meantime.
  const image_modules = loadImageModules()
  // If they cannot be loaded, each image fails with the error.
  image_modules.catch(() => undefined)
  const handle = taskHandler(options, session, image_modules)
  const handleAndReply = async (task: Task) => {
    const result = await handle(task).catch(
      (error: unknown): TaskResult => ({ kind: "failed", detail: causeText(error) }),
    )
    port.postMessage(result, buffersOf(result))
  }
  // Tasks run one at a time, in order; the next may arrive before the previous one is done.
  let last: Promise<unknown> = Promise.resolve()
  port.on("message", (task: Task | typeof end) => {
    last = last.then(() => (task === end ? session?.end() : handleAndReply(task)))
    if (task === end) void last.finally(() => port.close())
  })
  port.postMessage({ kind: "ready", batch: session?.batch ?? 0 } satisfies StartupMessage)
}

if (parentPort !== null) {
  const port = parentPort
  // Before the session, because this thread starts the session's threads.
  yieldToOthers()
  // `pool.ts` starts this thread, with these options.
  start(port, workerData as ThreadOptions).catch((error: unknown) => {
    port.postMessage({ kind: "unusable", detail: causeText(error) } satisfies StartupMessage)
    port.close()
  })
}
