/** Decodes an image repeatedly and reports the first failure. */
import { parentPort, workerData } from "node:worker_threads"
import { decode } from "../../images/image.ts"

// The test passes these.
const { image, times } = workerData as { readonly image: Uint8Array; readonly times: number }
const options = { pixels_max: 1e6, auto_orient: false }

let failure = "none"
for (let n = 0; n < times && failure === "none"; n++) {
  const decoded = await decode(image, options)
  if ("problem" in decoded) failure = decoded.detail
}
parentPort?.postMessage(failure)
