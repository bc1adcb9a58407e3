/** Huffman codes of a JPEG, and the blocks that they stand for. Source: ITU T.81, C and F.2. */

/** Bits that are looked up at once: the longest codes, of what is rare, are searched. */
const look_bits = 10
const code_bits_max = 16
/** A block's numbers have at most 64 codes of 16 bits, with 15 bits each behind them. */
export const block_bytes_max = 256
export const block_numbers = 64

/**
 * An entry says for bits ahead: its code's length, how many bits of a number follow it, how many
 * zeros come before it. Where the number is among the bits that were looked up, it is there itself,
 * and its bits are counted as the code's.
 */
const length_mask = 0x3f
const size_shift = 6
const run_shift = 10
const nibble = 0xf
const value_shift = 16

export interface Codes {
  /** By the next bits; 0 where the code is longer, or none. */
  readonly short: Int32Array
  /** By the length: the first bits beyond its codes, as the upper part of 16; its first place. */
  readonly limits: Int32Array
  readonly places: Int32Array
  readonly symbols: Uint8Array
}

/** Where in a block, row by row, the numbers go as they come. */
export const natural = Uint8Array.from(
  // Along the diagonals of an 8 by 8 square, up and down in turn.
  Array.from({ length: 64 }, (_, n) => n).sort((one, other) => order(one) - order(other)),
)

function order(place: number): number {
  const [down, across] = [place >> 3, place & 7]
  const diagonal = down + across
  return diagonal * 8 + (diagonal % 2 === 0 ? across : down)
}

const extended = (bits: number, size: number) =>
  size === 0 || bits >> (size - 1) === 1 ? bits : bits - (1 << size) + 1

/** Of `counts[n]` codes of n + 1 bits each; undefined of what no code can be. */
export const codesOf = (counts: Uint8Array, symbols: Uint8Array): Codes | undefined => {
  const short = new Int32Array(1 << look_bits)
  const limits = new Int32Array(code_bits_max + 1)
  const places = new Int32Array(code_bits_max + 1)
  let [code, place] = [0, 0]
  for (let length = 1; length <= code_bits_max; length++) {
    const count = counts[length - 1] ?? 0
    places[length] = place - code
    for (let n = 0; n < count && length <= look_bits; n++) {
      fill(short, code + n, length, symbols[place + n] ?? 0)
    }
    code += count
    place += count
    // A code of ones alone is none.
    if (code >= 1 << length) return undefined
    limits[length] = code << (code_bits_max - length)
    code <<= 1
  }
  return { short, limits, places, symbols }
}

const fill = (short: Int32Array, code: number, length: number, symbol: number) => {
  const [run, size] = [symbol >> 4, symbol & nibble]
  const free = look_bits - length
  for (let rest = 0; rest < 1 << free; rest++) {
    const is_whole = size > 0 && size <= free
    const value = is_whole ? extended(rest >> (free - size), size) : 0
    const [used, left] = is_whole ? [length + size, 0] : [length, size]
    short[(code << free) | rest] =
      (value << value_shift) | (run << run_shift) | (left << size_shift) | used
  }
}

/** A long code's entry; 0 where there is none. */
const long = ({ limits, places, symbols }: Codes, bits: number): number => {
  for (let length = look_bits + 1; length <= code_bits_max; length++) {
    if (bits < (limits[length] ?? 0)) {
      const symbol = symbols[(bits >> (code_bits_max - length)) + (places[length] ?? 0)] ?? 0
      return ((symbol >> 4) << run_shift) | ((symbol & nibble) << size_shift) | length
    }
  }
  return 0
}

/** Bits from one place on; each block is read at once. */
export interface Bits {
  readonly view: DataView
  at: number
}

/**
 * Reads one block's numbers into `numbers` from `to` on, where zeros are; answers the first of
 * them less that of the block before, or NaN where the bits are no such block.
 */
export const readBlock = (
  bits: Bits,
  first: Codes,
  others: Codes,
  numbers: Int16Array,
  to: number,
  before: number,
): number => {
  const { view } = bits
  let at = bits.at
  let ahead = view.getInt32(at >> 3) << (at & 7)
  let entry = first.short[ahead >>> (32 - look_bits)] || long(first, ahead >>> 16)
  if (entry === 0 || (entry >> run_shift) & nibble) return Number.NaN
  at += entry & length_mask
  let size = (entry >> size_shift) & nibble
  let value = entry >> value_shift
  if (size > 0) {
    ahead = view.getInt32(at >> 3) << (at & 7)
    value = (ahead >>> (32 - size)) + (ahead < 0 ? 0 : 1 - (1 << size))
    at += size
  }
  const level = before + value
  numbers[to] = level
  for (let k = 1; k < block_numbers; k++) {
    ahead = view.getInt32(at >> 3) << (at & 7)
    entry = others.short[ahead >>> (32 - look_bits)] || long(others, ahead >>> 16)
    if (entry === 0) return Number.NaN
    at += entry & length_mask
    size = (entry >> size_shift) & nibble
    value = entry >> value_shift
    const run = (entry >> run_shift) & nibble
    if (size > 0) {
      ahead = view.getInt32(at >> 3) << (at & 7)
      value = (ahead >>> (32 - size)) + (ahead < 0 ? 0 : 1 - (1 << size))
      at += size
    } else if (value === 0) {
      // All that follow are zeros, or the next 16.
      if (run < nibble) break
      k += nibble
      continue
    }
    k += run
    if (k >= block_numbers) return Number.NaN
    numbers[to + (natural[k] ?? 0)] = value
  }
  bits.at = at
  return level
}
