/**
 * The erasure code: two parity shards for 4 or 8 data shards. Any two shards may be lost.
 *
 * The shards of a code live in its WebAssembly memory. Callers write shards there and read the
 * results there, so that nothing is copied in between.
 *
 * Source: document 1 §2 Replication policies, EC42 and EC82.
 */
import {
  erasureKernels,
  list_at,
  list_length,
  list_optional,
  step_bytes,
  tables_at,
} from "./kernel.ts"

/** Number of parity shards, which is also the number of shards that may be lost. */
export const parity_shards = 2

const page_bytes = 65_536
const table_bytes = 16
const field_bits = 8
const field_polynomial = 0x11d

/** Multiplies two bytes in GF(256). */
const product = (one: number, other: number) => {
  let sum = 0
  let doubled = one
  for (let bits = other; bits > 0; bits >>= 1) {
    if (bits & 1) sum ^= doubled
    doubled <<= 1
    if (doubled >> field_bits) doubled ^= field_polynomial
  }
  return sum
}

const power = (exponent: number): number => (exponent === 0 ? 1 : product(2, power(exponent - 1)))

/** The inverse of each byte except zero: all others are powers of 2, with period 255. */
const inverses = (() => {
  const order = 2 ** field_bits - 1
  const powers = Array.from({ length: order }, () => 1)
  for (let at = 1; at < order; at++) powers[at] = product(2, powers[at - 1] ?? 1)
  const found = new Uint8Array(order + 1)
  for (const [at, byte] of powers.entries()) found[byte] = powers[(order - at) % order] ?? 0
  return found
})()

/**
 * Gap between two shards. Shards at a power-of-two distance compete for the same cache lines: with
 * eight of them, encoding is up to 14% slower.
 */
const gap_bytes = 17 * step_bytes

/** The numbers of data shards that the kernels support. */
const data_shards_known = [4, 8]

/** The products of a constant with each low nibble and each high nibble. */
const tablesOf = (factor: number) =>
  Uint8Array.from({ length: 2 * table_bytes }, (_, at) =>
    at < table_bytes ? product(factor, at) : product(factor, (at - table_bytes) << 4),
  )

export interface ErasureCode {
  readonly data_shards: number
  /** Capacity of each shard. */
  readonly shard_bytes_max: number
  /** The memory of a shard: data shards from 0, then P, then Q. Every call may overwrite it. */
  readonly shard: (at: number) => Uint8Array
  /** Computes the parity of the first `bytes` of each data shard; `bytes` is a multiple of 64. */
  readonly encode: (bytes: number) => void
  /** Reconstructs the lost shards, at most two, from the others. */
  readonly rebuild: (lost: ReadonlyArray<number>, bytes: number) => void
  /** Reconstructs only the lost data shards. */
  readonly rebuildData: (lost: ReadonlyArray<number>, bytes: number) => void
}

/**
 * Writes the addresses of P and of the data shards that are left, as `rebuild.wat` expects them.
 */
const listOthers = (
  list: Int32Array,
  data_and_p: ReadonlyArray<number>,
  first: number,
  second?: number,
) => {
  // A plain loop: with an iterator, this took a tenth of the time of reconstructing 64 KiB.
  for (let at = 0, to = 0; at < data_and_p.length; at++) {
    if (at === first || at === second) continue
    if (to === list_optional && second !== undefined) to++
    list[to++] = data_and_p[at] ?? 0
  }
  if (second !== undefined) list[list_optional] = 0
}

/** Creates a code of 4 or 8 data shards, for shards of up to `shard_bytes_max`. */
export const erasureCode = (data_shards: number, shard_bytes_max: number): ErasureCode => {
  if (!data_shards_known.includes(data_shards)) {
    throw new Error(`a code has 4 or 8 data shards, not ${data_shards}`)
  }
  if (shard_bytes_max <= 0 || shard_bytes_max % step_bytes !== 0) {
    throw new Error(`a shard's capacity must be a multiple of ${step_bytes} bytes`)
  }
  const at_p = data_shards
  const stride = shard_bytes_max + gap_bytes
  // The tables have their own page before the shards.
  const room = page_bytes + (data_shards + parity_shards) * stride
  const memory = new WebAssembly.Memory({ initial: Math.ceil(room / page_bytes) })
  const address = (at: number) => page_bytes + at * stride
  const data_and_p = Array.from({ length: at_p + 1 }, (_, at) => address(at))
  const kernels = erasureKernels(memory)
  const tables = new Uint8Array(memory.buffer, tables_at, 2 * table_bytes)
  const list = new Int32Array(memory.buffer, list_at, list_length)
  let table_factor = 0

  const checked = (bytes: number) => {
    if (bytes > 0 && bytes <= shard_bytes_max && bytes % step_bytes === 0) return bytes
    throw new Error(
      `${bytes} bytes are not a multiple of ${step_bytes} within the shard's capacity`,
    )
  }
  const encode = (bytes: number) => {
    kernels.encode(address(0), stride, data_shards, checked(bytes))
  }
  /** Reconstructs one data shard from P and the other data shards. */
  const rebuildOne = (lost: number, bytes: number) => {
    listOthers(list, data_and_p, lost)
    kernels.xor(address(lost), 0, bytes)
  }
  /** Reconstructs one data shard from Q, or two from P and Q. */
  const rebuildByQ = (bytes: number, first: number, second?: number) => {
    if (second !== undefined) listOthers(list, data_and_p, first, second)
    const divisor = power(first) ^ (second === undefined ? 0 : power(second))
    const factor = inverses[divisor] ?? 0
    if (factor !== table_factor) tables.set(tablesOf(factor))
    table_factor = factor
    const [last, q] = [address(at_p - 1), address(at_p + 1)]
    const second_at = second === undefined ? 0 : address(second)
    kernels.rebuild(last, stride, data_shards, q, address(first), second_at, bytes)
  }
  const rebuildData = (lost: ReadonlyArray<number>, bytes: number) => {
    checked(bytes)
    const lost_indexes = [...new Set(lost)].sort((one, other) => one - other)
    if (lost_indexes.length > parity_shards) {
      throw new Error(`${lost_indexes.length} shards are lost, more than two`)
    }
    const [first, second] = lost_indexes
    if (first === undefined || first >= data_shards) return
    if (second !== undefined && second < at_p) rebuildByQ(bytes, first, second)
    else if (second === at_p) rebuildByQ(bytes, first)
    else rebuildOne(first, bytes)
  }
  const rebuild = (lost: ReadonlyArray<number>, bytes: number) => {
    rebuildData(lost, bytes)
    if (lost.some((shard) => shard >= data_shards)) encode(bytes)
  }
  return {
    data_shards,
    shard_bytes_max,
    shard: (at) => new Uint8Array(memory.buffer, address(at), shard_bytes_max),
    encode,
    rebuild,
    rebuildData,
  }
}
