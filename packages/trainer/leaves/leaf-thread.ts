/** The program of the drawing thread: each message is a request, each response the pixels. */
import { parentPort } from "node:worker_threads"
import { side } from "#schemas/image-side.ts"
import { halve, picture_bytes } from "../pictures.ts"
import { drawLeaf } from "./leaf.ts"

export interface DrawRequest {
  readonly labels: Uint16Array
  readonly seeds: Uint32Array
  /** The kinds of pictures without a leaf. */
  readonly kinds: ReadonlyArray<string>
}

/** Draws the pictures at half their side and concatenates them. */
const drawAll = ({ labels, seeds, kinds }: DrawRequest) => {
  const bytes = new Uint8Array(labels.length * picture_bytes)
  for (const [i, label] of labels.entries()) {
    bytes.set(halve(drawLeaf(label, seeds[i] ?? 0, side, kinds)), i * picture_bytes)
  }
  return bytes
}

parentPort?.on("message", (request: DrawRequest) => {
  const bytes = drawAll(request)
  parentPort?.postMessage(bytes, [bytes.buffer])
})
