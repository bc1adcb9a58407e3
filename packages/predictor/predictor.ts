/** Image classification in worker threads: decoding, resizing and batched inference. */
import type { decode as decodeImage, decodeFast as decodeImageFast } from "./images/image.ts"
import type { openSession as openSessionImpl } from "./session.ts"

export { typeOf } from "./images/type.ts"
export {
  type Cancel,
  end_ms_max,
  type Failure,
  type Pool,
  type PredictedImage,
  type PreparedImage,
  predictorPool,
  type Rows,
  type Threads,
} from "./pool.ts"
export { type Network, squares, tensor_length } from "./protocol.ts"
export { resampler } from "./resample.ts"
export type { Session } from "./session.ts"

/** The program of the pool's threads. */
export const thread_program = new URL("./thread.ts", import.meta.url)

// Loaded on first use: only threads and tests need sharp and ONNX Runtime.
export const decode: typeof decodeImage = async (...image) =>
  (await import("./images/image.ts")).decode(...image)
export const decodeFast: typeof decodeImageFast = async (...image) =>
  (await import("./images/image.ts")).decodeFast(...image)
export const openSession: typeof openSessionImpl = async (options) =>
  (await import("./session.ts")).openSession(options)
