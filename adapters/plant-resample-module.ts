/**
 * The two passes of a resize as WebAssembly: weighted sums of bytes in fixed point.
 *
 * Weights have 22 bits after the point, more than the 16 bits that a vector multiplies two at a
 * time. So a weight is halved into its upper part and its lowest 11 bits, which are summed apart
 * and put together at the end: the sum is the same to the last bit.
 */
import {
  add,
  addVectors,
  advance,
  bytesVector,
  type Code,
  dot,
  get,
  high16To32,
  highBytesTo16,
  integer,
  load,
  loadSplat,
  loadVector,
  low16To32,
  lowBytesTo16,
  multiply,
  narrowTo16,
  narrowToBytes,
  set,
  shiftLeft,
  shiftRight,
  splat,
  storeLow,
  storeVector,
  swizzle,
  times,
  wasmProgram,
} from "#adapters/wasm-module.ts"

/** Binary digits after the point of a weight. Source: Pillow's Resample.c, PRECISION_BITS. */
export const precision_bits = 22
/** Digits of a weight's lower part. */
export const low_bits = 11
/** Pixels that one step of the horizontal pass takes together. */
export const group_pixels = 4
/** Pixels that are packed together. */
export const pack_pixels = 4
/** Bytes of the weights of one such step: four pairs, upper and lower parts. */
export const group_bytes = 16

export interface ResampleProgram {
  /**
   * RGB rows to RGBX rows: for each pixel out of `table` (i32 byte offset in the row, i32 groups)
   * its weights follow each other at `weights`. Reads up to 15 bytes beyond a row.
   */
  readonly horizontal: (
    source: number,
    target: number,
    table: number,
    weights: number,
    rows: number,
    source_stride: number,
    pixels: number,
  ) => void
  /** `taps` rows into one: `blocks` of 16 bytes each, weights of i32. */
  readonly vertical: (
    source: number,
    target: number,
    weights: number,
    taps: number,
    stride: number,
    blocks: number,
  ) => void
  /** RGBX to RGB, `blocks` of four pixels each. Writes up to 4 bytes beyond them. */
  readonly pack: (source: number, target: number, blocks: number) => void
}

const half = splat(1 << (precision_bits - 1))
const none = 0x80

/** Bytes 3 apart, as 16-bit numbers in pairs: red red, green green, blue blue, none. */
const pairAt = (byte: number): Code =>
  bytesVector([
    ...[0, 1, 2].flatMap((colour) => [byte + colour, none, byte + 3 + colour, none]),
    none,
    none,
    none,
    none,
  ])

const accumulate = (local: number, value: Code): Code => set(local, addVectors(get(local), value))

/** Four sums with their point, rounded, as the low four bytes; the others mean nothing. */
const rounded = (sum: Code, any: Code): Code =>
  narrowToBytes(narrowTo16(shiftRight(sum, integer(precision_bits)), any), any)

const horizontal = () => {
  const [source, target, table, weights, rows, stride, pixels] = [0, 1, 2, 3, 4, 5, 6]
  const [entry, weight, at, left, groups] = [7, 8, 9, 10, 11]
  const [upper, lower, near, far, first_two, last_two] = [12, 13, 14, 15, 16, 17]
  const group = [
    ...set(near, loadVector(get(at))),
    ...set(far, swizzle(get(near), get(last_two))),
    ...set(near, swizzle(get(near), get(first_two))),
    ...accumulate(upper, dot(get(near), loadSplat(get(weight), 0))),
    ...accumulate(lower, dot(get(near), loadSplat(get(weight), 4))),
    ...accumulate(upper, dot(get(far), loadSplat(get(weight), 8))),
    ...accumulate(lower, dot(get(far), loadSplat(get(weight), 12))),
    ...advance(at, integer(3 * group_pixels)),
    ...advance(weight, integer(group_bytes)),
  ]
  const pixel = [
    ...set(at, add(get(source), load(get(entry)))),
    ...set(groups, load(get(entry), 4)),
    ...set(upper, splat(0)),
    ...set(lower, half),
    ...times(groups, group),
    ...accumulate(lower, shiftLeft(get(upper), integer(low_bits))),
    ...storeLow(get(target), rounded(get(lower), get(near))),
    ...advance(target, integer(4)),
    ...advance(entry, integer(8)),
  ]
  const row = [
    ...set(entry, get(table)),
    ...set(weight, get(weights)),
    ...set(left, get(pixels)),
    ...times(left, pixel),
    ...advance(source, get(stride)),
  ]
  // Within the loop V8 would make both anew for each pixel: a sixth of the whole resize.
  const body = [...set(first_two, pairAt(0)), ...set(last_two, pairAt(6)), ...times(rows, row)]
  return { parameters: 7, integers: 5, vectors: 6, body }
}

const vertical = () => {
  const [source, target, weights, taps, stride, blocks] = [0, 1, 2, 3, 4, 5]
  const [at, weight, left] = [6, 7, 8]
  const [sum, bytes, factor] = [9, 13, 14]
  const quarters = [
    low16To32(lowBytesTo16(get(bytes))),
    high16To32(lowBytesTo16(get(bytes))),
    low16To32(highBytesTo16(get(bytes))),
    high16To32(highBytesTo16(get(bytes))),
  ]
  const tap = [
    ...set(bytes, loadVector(get(at))),
    ...set(factor, loadSplat(get(weight))),
    ...quarters.flatMap((quarter, n) => accumulate(sum + n, multiply(quarter, get(factor)))),
    ...advance(at, get(stride)),
    ...advance(weight, integer(4)),
  ]
  const whole = [0, 1, 2, 3].map((n) => shiftRight(get(sum + n), integer(precision_bits)))
  const [a = [], b = [], c = [], d = []] = whole
  const block = [
    ...set(at, get(source)),
    ...set(weight, get(weights)),
    ...set(left, get(taps)),
    ...[0, 1, 2, 3].flatMap((n) => set(sum + n, half)),
    ...times(left, tap),
    ...storeVector(get(target), narrowToBytes(narrowTo16(a, b), narrowTo16(c, d))),
    ...advance(source, integer(16)),
    ...advance(target, integer(16)),
  ]
  return { parameters: 6, integers: 3, vectors: 6, body: times(blocks, block) }
}

const pack = () => {
  const [source, target, blocks] = [0, 1, 2]
  const kept = bytesVector([0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, none, none, none, none])
  const block = [
    ...storeVector(get(target), swizzle(loadVector(get(source)), kept)),
    ...advance(source, integer(16)),
    ...advance(target, integer(12)),
  ]
  return { parameters: 3, integers: 0, vectors: 0, body: times(blocks, block) }
}

/** The passes over a memory of one's own. */
export const resampleProgram: (memory: WebAssembly.Memory) => ResampleProgram = wasmProgram({
  horizontal: horizontal(),
  vertical: vertical(),
  pack: pack(),
})
