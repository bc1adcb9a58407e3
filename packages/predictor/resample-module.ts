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
  highBytesTo16,
  integer,
  load,
  loadSplat,
  loadVector,
  lowBytesTo16,
  narrowTo16,
  narrowToBytes,
  set,
  shiftLeft,
  shiftRight,
  shuffle,
  splat,
  storeLow,
  storeVector,
  swizzle,
  times,
  wasmProgram,
} from "./wasm-module.ts"

/** Binary digits after the point of a weight. Source: Pillow's Resample.c, PRECISION_BITS. */
export const precision_bits = 22
/** Digits of a weight's lower part. */
export const low_bits = 11
/** Pixels that one step of the horizontal pass takes together. */
export const group_pixels = 4
/** Bytes of the weights of one pair: upper parts, then lower parts. */
export const pair_bytes = 8
/** What the narrow pass takes for a pixel out, 15 bytes of one vector; it makes four at once. */
export const narrow_pixels = 5
export const narrow_pairs = 3
export const narrow_at_once = 4

export interface ResampleProgram {
  /**
   * RGB rows to RGB rows: for each pixel out of `table` (i32 byte offset in the row, i32 groups)
   * its weights follow each other at `weights`. Reads up to 15 bytes beyond a row, writes one.
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
  /** The same where five pixels are enough for each, four at once. Writes four bytes beyond. */
  readonly narrow: ResampleProgram["horizontal"]
  /** `pairs` of rows into one: `blocks` of 16 bytes each. */
  readonly vertical: (
    source: number,
    target: number,
    weights: number,
    pairs: number,
    stride: number,
    blocks: number,
  ) => void
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

/** The same of a pixel that is not one of a pair. */
const oneAt = (byte: number): Code =>
  bytesVector([byte, byte + 1, byte + 2, none].flatMap((place) => [place, none, none, none]))

const accumulate = (local: number, value: Code): Code => set(local, addVectors(get(local), value))

/** Sums of the weights' upper and lower parts, without their point. */
const whole = (upper: Code, lower: Code): Code =>
  shiftRight(
    addVectors(addVectors(lower, half), shiftLeft(upper, integer(low_bits))),
    integer(precision_bits),
  )

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
    ...advance(weight, integer((pair_bytes * group_pixels) / 2)),
  ]
  const pixel = [
    ...set(at, add(get(source), load(get(entry)))),
    ...set(groups, load(get(entry), 4)),
    ...set(upper, splat(0)),
    ...set(lower, splat(0)),
    ...times(groups, group),
    ...set(lower, whole(get(upper), get(lower))),
    ...storeLow(get(target), narrowToBytes(narrowTo16(get(lower), get(near)), get(near))),
    ...advance(target, integer(3)),
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

const narrow = () => {
  const [source, target, table, weights, rows, stride, pixels] = [0, 1, 2, 3, 4, 5, 6]
  const [entry, weight, left] = [7, 8, 9]
  const [bytes, pair, first_two, middle_two, last_one, kept] = [14, 15, 16, 17, 18, 19]
  const sums = [10, 11, 12, 13]
  const [upper, lower] = [20, 21]
  const pixel = (sum: number, n: number) => {
    const offset = n * narrow_pairs * pair_bytes
    const dots = [first_two, middle_two, last_one].flatMap((picks, k) => [
      ...set(pair, swizzle(get(bytes), get(picks))),
      ...[upper, lower].flatMap((of, part) => {
        const product = dot(get(pair), loadSplat(get(weight), offset + k * pair_bytes + part * 4))
        return k === 0 ? set(of, product) : accumulate(of, product)
      }),
    ])
    return [
      ...set(bytes, loadVector(add(get(source), load(get(entry), n * 8)))),
      ...dots,
      ...set(sum, whole(get(upper), get(lower))),
    ]
  }
  const [a = 0, b = 0, c = 0, d = 0] = sums
  const step = [
    ...sums.flatMap(pixel),
    ...storeVector(
      get(target),
      swizzle(narrowToBytes(narrowTo16(get(a), get(b)), narrowTo16(get(c), get(d))), get(kept)),
    ),
    ...advance(target, integer(3 * narrow_at_once)),
    ...advance(entry, integer(8 * narrow_at_once)),
    ...advance(weight, integer(pair_bytes * narrow_pairs * narrow_at_once)),
  ]
  const row = [
    ...set(entry, get(table)),
    ...set(weight, get(weights)),
    ...set(left, get(pixels)),
    ...times(left, step),
    ...advance(source, get(stride)),
  ]
  const colours = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, none, none, none, none]
  const body = [
    ...set(first_two, pairAt(0)),
    ...set(middle_two, pairAt(6)),
    ...set(last_one, oneAt(12)),
    ...set(kept, bytesVector(colours)),
    ...times(rows, row),
  ]
  return { parameters: 7, integers: 3, vectors: 12, body }
}

/** Bytes of two vectors in turn, of their lower halves or their upper ones. */
const inTurn = (from: 0 | 8, one: Code, other: Code): Code =>
  shuffle(
    Array.from({ length: 16 }, (_, n) => from + (n >> 1) + (n & 1) * 16),
    one,
    other,
  )

const vertical = () => {
  const [source, target, weights, pairs, stride, blocks] = [0, 1, 2, 3, 4, 5]
  const [at, weight, left] = [6, 7, 8]
  const uppers = [9, 10, 11, 12]
  const lowers = [13, 14, 15, 16]
  const [low, high, quarter, upper, lower] = [17, 18, 19, 20, 21]
  const quarters = [
    lowBytesTo16(get(low)),
    highBytesTo16(get(low)),
    lowBytesTo16(get(high)),
    highBytesTo16(get(high)),
  ]
  const pair = [
    ...set(low, loadVector(get(at))),
    ...advance(at, get(stride)),
    ...set(quarter, loadVector(get(at))),
    ...advance(at, get(stride)),
    ...set(high, inTurn(8, get(low), get(quarter))),
    ...set(low, inTurn(0, get(low), get(quarter))),
    ...set(upper, loadSplat(get(weight), 0)),
    ...set(lower, loadSplat(get(weight), 4)),
    ...quarters.flatMap((bytes, n) => [
      ...set(quarter, bytes),
      ...accumulate(uppers[n] ?? 0, dot(get(quarter), get(upper))),
      ...accumulate(lowers[n] ?? 0, dot(get(quarter), get(lower))),
    ]),
    ...advance(weight, integer(pair_bytes)),
  ]
  const done = uppers.map((sum, n) => whole(get(sum), get(lowers[n] ?? 0)))
  const [a = [], b = [], c = [], d = []] = done
  const block = [
    ...set(at, get(source)),
    ...set(weight, get(weights)),
    ...set(left, get(pairs)),
    ...[...uppers, ...lowers].flatMap((sum) => set(sum, splat(0))),
    ...times(left, pair),
    ...storeVector(get(target), narrowToBytes(narrowTo16(a, b), narrowTo16(c, d))),
    ...advance(source, integer(16)),
    ...advance(target, integer(16)),
  ]
  return { parameters: 6, integers: 3, vectors: 13, body: times(blocks, block) }
}

/** The passes over a memory of one's own. */
export const resampleProgram: (memory: WebAssembly.Memory) => ResampleProgram = wasmProgram({
  horizontal: horizontal(),
  narrow: narrow(),
  vertical: vertical(),
})
