/** The far side of the predictor: prepares images, and runs the network where it has a session. */
import { hash } from "node:crypto"
import { parentPort, workerData } from "node:worker_threads"
import { causeText } from "#schemas/cause-text.ts"
import { side } from "#schemas/image-side.ts"
import { yieldToOthers } from "#threads"
import {
  type Answer,
  end,
  type Input,
  type Started,
  type Task,
  type ThreadOptions,
} from "./protocol.ts"
import { resampler } from "./resample.ts"
import { openSession, type Session } from "./session.ts"

/** What has sharp below it: a quarter of all that a thread loads. */
const loadPictures = () => Promise.all([import("./images/image.ts"), import("./heatmap.ts")])
type Pictures = ReturnType<typeof loadPictures>

const working = (options: ThreadOptions, session: Session | undefined, pictures: Pictures) => {
  const { resize, auto_orient, pixels_max } = options
  const resized = resampler(side)
  const image_options = { pixels_max, auto_orient }

  const prepare = async (image: Uint8Array, runs: boolean): Promise<Answer> => {
    const [{ decode, decodeFast, giveBack }] = await pictures
    const decoded = await (resize === "fast"
      ? decodeFast(image, image_options, side)
      : decode(image, image_options))
    if ("problem" in decoded) return { kind: "refused", ...decoded }
    const is_small = "is_small" in decoded && decoded.is_small
    const small = is_small ? decoded.rgb : resized(decoded, resize === "fast" ? "bicubic" : resize)
    const { width, height } = decoded
    const seen = { width, height, sha256: hash("sha256", image, "hex") }
    if (small !== decoded.rgb) giveBack(decoded.rgb)
    giveBack(image)
    if (runs) {
      const [row = "The network was not run."] = await outputsOf([small])
      return { kind: "predicted", ...seen, row }
    }
    // The memory may be the resizer's: the next image is put there.
    return { kind: "prepared", ...seen, rgb: new Uint8Array(small) }
  }
  const outputsOf = async (inputs: ReadonlyArray<Input>) => {
    if (session === undefined) throw new Error("This thread has no session.")
    return session.run(inputs)
  }
  const infer = async (inputs: ReadonlyArray<Input>): Promise<Answer> => {
    return { kind: "inferred", outputs: await outputsOf(inputs) }
  }
  return async (task: Task): Promise<Answer> => {
    switch (task.kind) {
      case "prepare":
        return prepare(task.image, task.runs)
      case "infer":
        return infer(task.inputs)
      case "hide": {
        const [, { hideSquare }] = await pictures
        const numbers = Array.from({ length: task.to - task.from }, (_, n) => task.from + n)
        return infer(numbers.map((square) => hideSquare(task.rgb, square)))
      }
      case "paint": {
        const [, { paint }] = await pictures
        return { kind: "painted", png: Uint8Array.from(await paint(task.rgb, task.drops)) }
      }
    }
  }
}

/** Made in this thread, each as a whole ArrayBuffer. */
const buffersOf = (answer: Answer): Array<ArrayBuffer> => {
  const made = (): ReadonlyArray<Uint8Array | Float32Array | string> => {
    if (answer.kind === "prepared") return [answer.rgb]
    if (answer.kind === "predicted") return [answer.row]
    if (answer.kind === "inferred") return answer.outputs
    return answer.kind === "painted" ? [answer.png] : []
  }
  return made().flatMap((one) =>
    typeof one === "object" && one.buffer instanceof ArrayBuffer ? [one.buffer] : [],
  )
}

const start = async (port: NonNullable<typeof parentPort>, options: ThreadOptions) => {
  const { network, session_threads, batch_max, scale } = options
  const session =
    session_threads === 0
      ? undefined
      : await openSession({ network, threads: session_threads, batch_max, scale })
  // Nobody waits for it before the first image: the rest of the server starts meanwhile.
  const pictures = loadPictures()
  // Where it cannot be loaded each image is told.
  pictures.catch(() => undefined)
  const answer = working(options, session, pictures)
  const answerAll = async (task: Task) => {
    const answered = await answer(task).catch(
      (error: unknown): Answer => ({ kind: "failed", detail: causeText(error) }),
    )
    port.postMessage(answered, buffersOf(answered))
  }
  // The next task may be here before the last is done: one after the other, in their order.
  let last: Promise<unknown> = Promise.resolve()
  port.on("message", (task: Task | typeof end) => {
    last = last.then(() => (task === end ? session?.end() : answerAll(task)))
    if (task === end) void last.finally(() => port.close())
  })
  port.postMessage({ kind: "ready", batch: session?.batch ?? 0 } satisfies Started)
}

if (parentPort !== null) {
  const port = parentPort
  // Before the session: its threads are started by this one.
  yieldToOthers()
  // `pool.ts` starts this thread, with these options.
  start(port, workerData as ThreadOptions).catch((error: unknown) => {
    port.postMessage({ kind: "unusable", detail: causeText(error) } satisfies Started)
    port.close()
  })
}
