/** The far side of the predictor: prepares images, and runs the network where it has a session. */
import { createHash } from "node:crypto"
import { parentPort, workerData } from "node:worker_threads"
import { hideSquare, paint } from "#adapters/plant-heatmap.ts"
import { decode, decodeFast } from "#adapters/plant-image.ts"
import {
  type Answer,
  end,
  type Started,
  type Task,
  type ThreadOptions,
} from "#adapters/plant-protocol.ts"
import { resampler } from "#adapters/plant-resample.ts"
import { openSession, type Session, tensor_length } from "#adapters/plant-session.ts"
import { side } from "#schemas/plant-disease/side.ts"

/** What each byte of colour becomes. As Python does it: in 64 bits, then rounded to 32. */
const scales = {
  "0..1": Float32Array.from({ length: 256 }, (_, byte) => byte / 255),
  "-1..1": Float32Array.from({ length: 256 }, (_, byte) => byte / 127.5 - 1),
  "0..255": Float32Array.from({ length: 256 }, (_, byte) => byte),
}

const working = (options: ThreadOptions, session: Session | undefined) => {
  const { resize, auto_orient, pixels_max } = options
  const resized = resampler(side)
  const scale = scales[options.scale]
  const image_options = { pixels_max, auto_orient }

  const tensorOf = (rgb: Uint8Array): Float32Array => {
    const tensor = new Float32Array(tensor_length)
    for (let i = 0; i < tensor_length; i++) tensor[i] = scale[rgb[i] ?? 0] ?? 0
    return tensor
  }
  const prepare = async (image: Uint8Array, with_pixels: boolean): Promise<Answer> => {
    const decoded = await (resize === "fast"
      ? decodeFast(image, image_options, side)
      : decode(image, image_options))
    if ("problem" in decoded) return { kind: "refused", ...decoded }
    const is_small = "is_small" in decoded && decoded.is_small
    const rgb = is_small ? decoded.rgb : resized(decoded, resize === "fast" ? "bicubic" : resize)
    const { width, height } = decoded
    const sha256 = createHash("sha256").update(image).digest("hex")
    // A copy: the decoder's own may be part of a larger buffer.
    const small = with_pixels ? Uint8Array.from(rgb) : undefined
    return { kind: "prepared", tensor: tensorOf(rgb), small, width, height, sha256 }
  }
  const infer = async (tensors: ReadonlyArray<Float32Array>): Promise<Answer> => {
    if (session === undefined) throw new Error("This thread has no session.")
    return { kind: "inferred", outputs: await session.run(tensors) }
  }
  return async (task: Task): Promise<Answer> => {
    switch (task.kind) {
      case "prepare":
        return prepare(task.image, task.with_pixels)
      case "infer":
        return infer(task.tensors)
      case "hide": {
        const numbers = Array.from({ length: task.to - task.from }, (_, n) => task.from + n)
        return infer(numbers.map((square) => tensorOf(hideSquare(task.rgb, square))))
      }
      case "paint":
        return { kind: "painted", png: Uint8Array.from(await paint(task.rgb, task.drops)) }
    }
  }
}

/** Made in this thread, each as a whole ArrayBuffer. */
const buffersOf = (answer: Answer): Array<ArrayBuffer> => {
  const made = (): ReadonlyArray<Uint8Array | Float32Array | string | undefined> => {
    if (answer.kind === "prepared") return [answer.tensor, answer.small]
    if (answer.kind === "inferred") return answer.outputs
    return answer.kind === "painted" ? [answer.png] : []
  }
  return made().flatMap((one) =>
    typeof one === "object" && one.buffer instanceof ArrayBuffer ? [one.buffer] : [],
  )
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

const start = async (port: NonNullable<typeof parentPort>, options: ThreadOptions) => {
  const { network, session_threads, batch_max } = options
  const session =
    session_threads === 0
      ? undefined
      : await openSession({ network, threads: session_threads, batch_max })
  const answer = working(options, session)
  const answerAll = async (task: Task) => {
    const answered = await answer(task).catch(
      (error: unknown): Answer => ({ kind: "failed", detail: reasonOf(error) }),
    )
    port.postMessage(answered, buffersOf(answered))
  }
  port.on("message", (task: Task | typeof end) => {
    if (task !== end) return void answerAll(task)
    void (session?.end() ?? Promise.resolve()).finally(() => port.close())
  })
  port.postMessage({ kind: "ready" } satisfies Started)
}

if (parentPort !== null) {
  const port = parentPort
  // `plant-pool` starts this thread, with these options.
  start(port, workerData as ThreadOptions).catch((error: unknown) => {
    port.postMessage({ kind: "unusable", detail: reasonOf(error) } satisfies Started)
    port.close()
  })
}
