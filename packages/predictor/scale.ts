/**
 * Bytes of colour become the numbers that the network sees, in the memory that it reads: a table's
 * entry for each byte, by WebAssembly, four times as fast as a loop over typed arrays.
 *
 * Source: document 3 §7 C, numbers from 0 to 1; plant facts 4.
 */
import { kernelsOf } from "./kernel.ts"
import type { Scale } from "./protocol.ts"

/** As Python does it: in 64 bits, then rounded to 32. */
export const scales: Record<Scale, Float32Array> = {
  "0..1": Float32Array.from({ length: 256 }, (_, byte) => byte / 255),
  "-1..1": Float32Array.from({ length: 256 }, (_, byte) => byte / 127.5 - 1),
  "0..255": Float32Array.from({ length: 256 }, (_, byte) => byte),
}

/** Bytes that one step of the program takes. */
const unrolled = 4

const scaleKernels = kernelsOf<"scale">("scale")

const page_bytes = 65_536
const number_bytes = 4
const colours = 3

export interface Scaler {
  /** float32[count, pixels, 3], or float32[count, 3, pixels] where planes are wanted. */
  readonly numbers: Float32Array
  /** Puts RGB bytes at the place of image `n`. */
  readonly put: (rgb: Uint8Array, n: number) => void
}

/** Room for so many images of so many pixels each, a multiple of 4. */
export const scaler = (
  scale: Scale,
  layout: "NHWC" | "NCHW",
  pixels: number,
  count: number,
): Scaler => {
  const length = pixels * colours
  const table_bytes = scales[scale].byteLength
  const at_numbers = table_bytes + length
  const bytes = at_numbers + count * length * number_bytes
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / page_bytes) })
  const { scale: scaled } = scaleKernels(memory)
  const source = new Uint8Array(memory.buffer, table_bytes, length)
  const numbers = new Float32Array(memory.buffer, at_numbers, count * length)
  new Float32Array(memory.buffer, 0, scales[scale].length).set(scales[scale])
  const put = (rgb: Uint8Array, n: number) => {
    source.set(rgb)
    const target = at_numbers + n * length * number_bytes
    if (layout === "NHWC") return scaled(table_bytes, target, 0, 1, length / unrolled)
    for (let colour = 0; colour < colours; colour++) {
      const plane = target + colour * pixels * number_bytes
      scaled(table_bytes + colour, plane, 0, colours, pixels / unrolled)
    }
  }
  return { numbers, put }
}
