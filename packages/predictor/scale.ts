/**
 * Scales RGB bytes to the network's input with a lookup table. The WebAssembly kernel is four times
 * as fast as a loop over typed arrays.
 *
 * Source: document 3 §7 C, numbers from 0 to 1; plant facts 4.
 */
import { loadKernels } from "./kernel.ts"
import type { Scale } from "./protocol.ts"

/** Computed in 64 bits, then rounded to 32, as in Python. */
export const scales: Record<Scale, Float32Array> = {
  "0..1": Float32Array.from({ length: 256 }, (_, byte) => byte / 255),
  "-1..1": Float32Array.from({ length: 256 }, (_, byte) => byte / 127.5 - 1),
  "0..255": Float32Array.from({ length: 256 }, (_, byte) => byte),
}

/** Bytes per step of the kernel. */
const unrolled = 4

const scaleKernels = loadKernels<"scale">("scale")

const page_bytes = 65_536
const number_bytes = 4
const channels = 3

export interface Scaler {
  /** float32[count, pixels, 3] for NHWC, float32[count, 3, pixels] for NCHW. */
  readonly numbers: Float32Array
  /** Scales an image to position `n` of the batch. */
  readonly put: (rgb: Uint8Array, n: number) => void
}

/** Allocates a batch of `count` images. `pixels` must be a multiple of 4. */
export const scaler = (
  scale: Scale,
  layout: "NHWC" | "NCHW",
  pixels: number,
  count: number,
): Scaler => {
  const length = pixels * channels
  const table_bytes = scales[scale].byteLength
  const at_numbers = table_bytes + length
  const bytes = at_numbers + count * length * number_bytes
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / page_bytes) })
  const { scale: scaleBytes } = scaleKernels(memory)
  const source = new Uint8Array(memory.buffer, table_bytes, length)
  const numbers = new Float32Array(memory.buffer, at_numbers, count * length)
  new Float32Array(memory.buffer, 0, scales[scale].length).set(scales[scale])
  const put = (rgb: Uint8Array, n: number) => {
    source.set(rgb)
    const target = at_numbers + n * length * number_bytes
    if (layout === "NHWC") return scaleBytes(table_bytes, target, 0, 1, length / unrolled)
    for (let channel = 0; channel < channels; channel++) {
      const plane = target + channel * pixels * number_bytes
      scaleBytes(table_bytes + channel, plane, 0, channels, pixels / unrolled)
    }
  }
  return { numbers, put }
}
