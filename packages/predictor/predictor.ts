/** Image classification in threads: decoding, resizing, and runs of the network in batches. */
import type { decode as decodeImage, decodeFast as decodeImageFast } from "./images/image.ts"
import type { openSession as open } from "./session.ts"

export { typeOf } from "./images/type.ts"
export {
  type Begun,
  type Cancel,
  end_ms_max,
  type Failed,
  type Pool,
  plantPool,
  type Ran,
  type Rows,
  type Threads,
} from "./pool.ts"
export { type Network, squares, tensor_length } from "./protocol.ts"
export { resampler } from "./resample.ts"
export type { Session } from "./session.ts"

/** The program of the pool's threads. */
export const thread_program = new URL("./thread.ts", import.meta.url)

// Loaded on first use: sharp and ONNX Runtime are needed by threads and tests alone.
export const decode: typeof decodeImage = async (...image) =>
  (await import("./images/image.ts")).decode(...image)
export const decodeFast: typeof decodeImageFast = async (...image) =>
  (await import("./images/image.ts")).decodeFast(...image)
export const openSession: typeof open = async (options) =>
  (await import("./session.ts")).openSession(options)
