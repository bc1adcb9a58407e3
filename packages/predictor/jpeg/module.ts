/**
 * What is done with a JPEG's numbers, as WebAssembly with vectors: libjpeg-turbo's accurate inverse
 * cosine transform, its smooth enlarging of colour, and its way from YCbCr to RGB, to the last bit.
 *
 * Source: libjpeg-turbo, jidctint.c, jdsample.c and jdcolor.c; where sums that no encoder makes
 * leave 16 bits, its vectors, jidctint-sse2.asm.
 */
import {
  add16,
  addVectors,
  advance,
  bytesVector,
  type Code,
  dot,
  either,
  get,
  high16To32Signed,
  highBytesTo16,
  integer,
  loadBytesTo16,
  loadVector,
  low16To32Signed,
  lowBytesTo16,
  multiply16,
  multiplyRounded,
  narrowTo16,
  narrowToBytes,
  pairsVector,
  set,
  shiftLeft,
  shiftLeft16,
  shiftRight,
  shiftRightUnsigned16,
  shuffle,
  splat,
  splat16,
  storeHalf,
  storeVector,
  subtract16,
  subtractVectors,
  swizzle,
  times,
  wasmProgram,
} from "../wasm-module.ts"

/** Addresses and strides are bytes. */
export interface JpegProgram {
  /** Blocks side by side, of 64 i16 each, times the i16 at `factors`, become 8 rows of bytes. */
  readonly transform: (
    source: number,
    factors: number,
    target: number,
    stride: number,
    blocks: number,
  ) => void
  /**
   * Bytes become twice as many, three parts of the nearer row and of the nearer byte and one of
   * the other, and `even` or `odd` sixteenths: 8 at a time. Reads a byte on either side of them.
   */
  readonly widen: (
    near: number,
    far: number,
    target: number,
    even: number,
    odd: number,
    steps: number,
  ) => void
  /** A row of luminance and two of colour become RGB, 16 pixels at a time. */
  readonly colour: (y: number, blue: number, red: number, target: number, steps: number) => void
}

/** Pixels of a block, across and down. */
export const block_side = 8
/** Pixels that become RGB together. */
export const pixels_at_once = 16
const row_bytes = 16
const block_bytes = block_side * row_bytes
/** Digits after the point of the cosines, and of what is between the two passes. */
const cosine_bits = 13
const between_bits = 2
/** What the two passes multiply by, beside that. */
const gain_bits = 3
/** Samples lie around it; of blue and red it is none. */
export const middle_sample = 128

type Half = 0 | 1

/** Numbers of 16 bits of the same half of two vectors, in turn. */
const inTurn = (half: Half, one: Code, other: Code): Code =>
  shuffle(
    Array.from({ length: 16 }, (_, n) => half * 8 + (n >> 2) * 2 + (n & 1) + ((n >> 1) & 1) * 16),
    one,
    other,
  )

const block_rows = [0, 1, 2, 3, 4, 5, 6, 7]
/** Locals of `transform`: after five parameters and an address eight for each row, three times. */
const rows = block_rows.map((n) => 6 + n)
const lower = block_rows.map((n) => 14 + n)
const upper = block_rows.map((n) => 22 + n)
const [even_0, even_1, even_2, even_3, odd_0, odd_1, odd_2, odd_3] = [
  30, 31, 32, 33, 34, 35, 36, 37,
]
const [third, fourth] = [38, 39]
const transform_vectors = 34

const nth = (locals: ReadonlyArray<number>, n: number) => locals[n] ?? 0
const row = (n: number) => get(nth(rows, n))

/** The even rows' part of the sums. Cosines in 13 bits: 4433 is 0.541196100, and so on. */
const evenSums = (half: Half, round: number): Code => {
  const toLong = half === 0 ? low16To32Signed : high16To32Signed
  const scaled = (sum: Code) =>
    addVectors(shiftLeft(toLong(sum), integer(cosine_bits)), splat(round))
  const pair = inTurn(half, row(2), row(6))
  return [
    ...set(third, dot(pair, pairsVector(4433 + 6270, 4433))),
    ...set(fourth, dot(pair, pairsVector(4433, 4433 - 15_137))),
    ...set(even_1, scaled(add16(row(0), row(4)))),
    ...set(even_2, scaled(subtract16(row(0), row(4)))),
    ...set(even_0, addVectors(get(even_1), get(third))),
    ...set(even_3, subtractVectors(get(even_1), get(third))),
    ...set(even_1, addVectors(get(even_2), get(fourth))),
    ...set(even_2, subtractVectors(get(even_2), get(fourth))),
  ]
}

const oddSums = (half: Half): Code => {
  const sums = inTurn(half, add16(row(7), row(3)), add16(row(5), row(1)))
  const outer = inTurn(half, row(7), row(1))
  const inner = inTurn(half, row(5), row(3))
  return [
    ...set(third, dot(sums, pairsVector(9633 - 16_069, 9633))),
    ...set(fourth, dot(sums, pairsVector(9633, 9633 - 3196))),
    ...set(odd_0, addVectors(dot(outer, pairsVector(2446 - 7373, -7373)), get(third))),
    ...set(odd_1, addVectors(dot(inner, pairsVector(16_819 - 20_995, -20_995)), get(fourth))),
    ...set(odd_2, addVectors(dot(inner, pairsVector(-20_995, 25_172 - 20_995)), get(third))),
    ...set(odd_3, addVectors(dot(outer, pairsVector(-7373, 12_299 - 7373)), get(fourth))),
  ]
}

/** Eight sums of each column, rounded to so many bits less: the columns' lower halves first. */
const pass = (bits: number, middle: number): Code => {
  const round = (1 << (bits - 1)) + (middle << bits)
  const evens = [even_0, even_1, even_2, even_3]
  const odds = [odd_3, odd_2, odd_1, odd_0]
  const ofHalf = (half: Half, to: ReadonlyArray<number>) => [
    ...evenSums(half, round),
    ...oddSums(half),
    ...evens.flatMap((even, n) => {
      const odd = get(nth(odds, n))
      return [
        ...set(nth(to, n), shiftRight(addVectors(get(even), odd), integer(bits))),
        ...set(nth(to, 7 - n), shiftRight(subtractVectors(get(even), odd), integer(bits))),
      ]
    }),
  ]
  return [
    ...ofHalf(0, lower),
    ...ofHalf(1, upper),
    ...block_rows.flatMap((n) =>
      set(nth(rows, n), narrowTo16(get(nth(lower, n)), get(nth(upper, n)))),
    ),
  ]
}

/** Rows become columns: three times each is mixed with the one four below it. */
const transposed = (): Code => {
  const mixed = (from: ReadonlyArray<number>, to: ReadonlyArray<number>) =>
    [0, 1, 2, 3].flatMap((n) => {
      const [one, other] = [get(nth(from, n)), get(nth(from, n + 4))]
      return [
        ...set(nth(to, 2 * n), inTurn(0, one, other)),
        ...set(nth(to, 2 * n + 1), inTurn(1, one, other)),
      ]
    })
  return [...mixed(rows, lower), ...mixed(lower, upper), ...mixed(upper, rows)]
}

const transform = () => {
  const [source, factors, target, stride, blocks, at] = [0, 1, 2, 3, 4, 5]
  const load = (from: number, n: number) => loadVector(get(from), n * row_bytes)
  const bytes = nth(lower, 0)
  const store = [0, 2, 4, 6].flatMap((n) => [
    ...set(bytes, narrowToBytes(row(n), row(n + 1))),
    ...storeHalf(get(at), get(bytes), 0),
    ...advance(at, get(stride)),
    ...storeHalf(get(at), get(bytes), 1),
    ...advance(at, get(stride)),
  ])
  const block = [
    ...block_rows.flatMap((n) => set(nth(rows, n), multiply16(load(source, n), load(factors, n)))),
    ...pass(cosine_bits - between_bits, 0),
    ...transposed(),
    ...pass(cosine_bits + between_bits + gain_bits, middle_sample),
    ...transposed(),
    ...set(at, get(target)),
    ...store,
    ...advance(source, integer(block_bytes)),
    ...advance(target, integer(block_side)),
  ]
  return { parameters: 5, integers: 1, vectors: transform_vectors, body: times(blocks, block) }
}

const widen = () => {
  const [near, far, target, even, odd, steps] = [0, 1, 2, 3, 4, 5]
  const [left, middle, right] = [6, 7, 8]
  const sum = (offset: number) =>
    add16(
      multiply16(loadBytesTo16(get(near), offset), pairsVector(3)),
      loadBytesTo16(get(far), offset),
    )
  const mixed = (other: number, rounding: number) =>
    shiftRightUnsigned16(add16(add16(get(middle), get(other)), splat16(get(rounding))), integer(4))
  const step = [
    ...set(left, sum(0)),
    ...set(middle, multiply16(sum(1), pairsVector(3))),
    ...set(right, sum(2)),
    ...storeVector(
      get(target),
      either(mixed(left, even), shiftLeft16(mixed(right, odd), integer(8))),
    ),
    ...advance(near, integer(8)),
    ...advance(far, integer(8)),
    ...advance(target, integer(16)),
  ]
  return { parameters: 6, integers: 0, vectors: 3, body: times(steps, step) }
}

/** Red, green and blue of light and colour, in 16 bits: libjpeg-turbo's sums with 16 more. */
const mixed = (light: Code, blue: Code, red: Code) => {
  const greenPart = (half: Half) => {
    // Of 0.34414 and 0.71414 in 16 bits; red once more than it should be.
    const factors = pairsVector(-22_554, 65_536 - 46_802)
    const sum = addVectors(dot(inTurn(half, blue, red), factors), splat(1 << 15))
    return shiftRight(sum, integer(16))
  }
  // 1.40200 and 1.77200 less 1 and 2, in 15 bits: for each of 256 numbers the same as in 16.
  const redPart = multiplyRounded(red, pairsVector(13_172))
  const bluePart = multiplyRounded(blue, pairsVector(-7471))
  return [
    add16(light, add16(red, redPart)),
    add16(light, subtract16(narrowTo16(greenPart(0), greenPart(1)), red)),
    add16(light, add16(add16(blue, blue), bluePart)),
  ] as const
}

const none = 0x80

/** The nth 16 bytes of pixels, whose red and green are in `pair` by turns from a pixel on. */
const placed = (n: number, from: number, pair: Code, blue?: Code): Code => {
  const places = Array.from({ length: 16 }, (_, k) => n * 16 + k)
  const ofPair = places.map((place) => {
    const [pixel, one] = [Math.floor(place / 3) - from, place % 3]
    return one < 2 && pixel >= 0 && pixel < 8 ? pixel * 2 + one : none
  })
  const ofBlue = places.map((place) => (place % 3 === 2 ? Math.floor(place / 3) : none))
  const some = swizzle(pair, bytesVector(ofPair))
  return blue === undefined ? some : either(some, swizzle(blue, bytesVector(ofBlue)))
}

const colour = () => {
  const [y, blue, red, target, steps] = [0, 1, 2, 3, 4]
  const [luma, cb, cr] = [5, 6, 7]
  const sums = [
    [8, 9, 10],
    [11, 12, 13],
  ] as const
  const half = (to16: (bytes: Code) => Code, to: (typeof sums)[number]) => {
    const wide = (local: number) => to16(loadVector(get(local)))
    const centred = (local: number) => subtract16(wide(local), pairsVector(middle_sample))
    const made = mixed(get(luma), get(cb), get(cr))
    return [
      ...set(luma, wide(y)),
      ...set(cb, centred(blue)),
      ...set(cr, centred(red)),
      ...to.flatMap((local, n) => set(local, made[n] ?? [])),
    ]
  }
  const bytes = (n: 0 | 1 | 2) => narrowToBytes(get(sums[0][n]), get(sums[1][n]))
  // What was in these is used up by then.
  const [low, high, blues] = [luma, 8, cr]
  const step = [
    ...half(lowBytesTo16, sums[0]),
    ...half(highBytesTo16, sums[1]),
    ...set(blues, bytes(2)),
    ...set(cb, bytes(1)),
    ...set(luma, bytes(0)),
    ...set(high, shuffle(bytesInTurn(1), get(luma), get(cb))),
    ...set(low, shuffle(bytesInTurn(0), get(luma), get(cb))),
    ...storeVector(get(target), placed(0, 0, get(low), get(blues))),
    ...storeVector(
      get(target),
      either(placed(1, 0, get(low), get(blues)), placed(1, 8, get(high))),
      16,
    ),
    ...storeVector(get(target), placed(2, 8, get(high), get(blues)), 32),
    ...[y, blue, red].flatMap((local) => advance(local, integer(16))),
    ...advance(target, integer(48)),
  ]
  return { parameters: 5, integers: 0, vectors: 9, body: times(steps, step) }
}

const bytesInTurn = (half: Half) =>
  Array.from({ length: 16 }, (_, n) => half * 8 + (n >> 1) + (n & 1) * 16)

/** The passes over a memory of one's own. */
export const jpegProgram: (memory: WebAssembly.Memory) => JpegProgram = wasmProgram({
  transform: transform(),
  widen: widen(),
  colour: colour(),
})
