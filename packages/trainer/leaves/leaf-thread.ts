/** A thread that draws leaves: one message is pictures that are wanted, one answer their bytes. */
import { parentPort } from "node:worker_threads"
import { side } from "#schemas/image-side.ts"
import { halved, picture_bytes } from "../pictures.ts"
import { drawLeaf } from "./leaf.ts"

export interface Wanted {
  readonly labels: Uint16Array
  readonly seeds: Uint32Array
  /** What a picture without a leaf may be. */
  readonly kinds: ReadonlyArray<string>
}

/** All of them at half their side, one after the other. */
const drawAll = ({ labels, seeds, kinds }: Wanted) => {
  const bytes = new Uint8Array(labels.length * picture_bytes)
  for (const [i, label] of labels.entries()) {
    bytes.set(halved(drawLeaf(label, seeds[i] ?? 0, side, kinds)), i * picture_bytes)
  }
  return bytes
}

parentPort?.on("message", (wanted: Wanted) => {
  const bytes = drawAll(wanted)
  parentPort?.postMessage(bytes, [bytes.buffer])
})
