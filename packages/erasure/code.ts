/**
 * The erasure code: two parity shards over some data shards, of which any two may be lost.
 *
 * A code has one stretch of memory in which its shards stand; who has bytes for one puts them there
 * and reads the others there, so that nothing is copied between the two.
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

/** Shards that may be lost: two are parity. */
export const parity_shards = 2

const page_bytes = 65_536
const table_bytes = 16
const field_bits = 8
const field_polynomial = 0x11d

/** The product of two bytes over GF(256). */
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

/** The inverse of each byte; zero has none. The others are powers of 2, and 255 are a turn. */
const inverses = (() => {
  const order = 2 ** field_bits - 1
  const powers = Array.from({ length: order }, () => 1)
  for (let at = 1; at < order; at++) powers[at] = product(2, powers[at - 1] ?? 1)
  const found = new Uint8Array(order + 1)
  for (const [at, byte] of powers.entries()) found[byte] = powers[(order - at) % order] ?? 0
  return found
})()

/**
 * Bytes between two shards. Shards that are a power of two apart compete for the same lines of a
 * core's cache: eight of them with parity are up to 14% slower.
 */
const gap_bytes = 17 * step_bytes

/** What the kernels are written for. */
const data_shards_known = [4, 8]

/** A constant times each low half of a byte, and times each high half. */
const tablesOf = (factor: number) =>
  Uint8Array.from({ length: 2 * table_bytes }, (_, at) =>
    at < table_bytes ? product(factor, at) : product(factor, (at - table_bytes) << 4),
  )

export interface ErasureCode {
  readonly data_shards: number
  /** Bytes that each shard has room for. */
  readonly shard_bytes_max: number
  /** A shard's place: data shards from 0, then P, then Q. Its bytes change with every call. */
  readonly shard: (at: number) => Uint8Array
  /** Makes the parity of the first `bytes` of each data shard; `bytes` a multiple of 64. */
  readonly encode: (bytes: number) => void
  /** Makes the lost shards, at most two of all, of the others. */
  readonly rebuild: (lost: ReadonlyArray<number>, bytes: number) => void
  /** Makes those of data only: parity that is lost stays as it is. */
  readonly rebuildData: (lost: ReadonlyArray<number>, bytes: number) => void
}

/** Lists the data shards but the lost ones and P, as `rebuild.wat` reads them. */
const listOthers = (
  list: Int32Array,
  data_and_p: ReadonlyArray<number>,
  first: number,
  second?: number,
) => {
  // A plain loop: an iterator took a tenth of the time in which a shard of 64 KiB is made.
  for (let at = 0, to = 0; at < data_and_p.length; at++) {
    if (at === first || at === second) continue
    if (to === list_optional && second !== undefined) to++
    list[to++] = data_and_p[at] ?? 0
  }
  if (second !== undefined) list[list_optional] = 0
}

/** A code of `data_shards`, 4 or 8, and two parities, with room for shards of `shard_bytes_max`. */
export const erasureCode = (data_shards: number, shard_bytes_max: number): ErasureCode => {
  if (!data_shards_known.includes(data_shards)) {
    throw new Error(`a code has 4 or 8 data shards, not ${data_shards}`)
  }
  if (shard_bytes_max <= 0 || shard_bytes_max % step_bytes !== 0) {
    throw new Error(`a shard's room must be a multiple of ${step_bytes} bytes`)
  }
  const at_p = data_shards
  const stride = shard_bytes_max + gap_bytes
  // The tables have a page of their own, before the shards.
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
    throw new Error(`${bytes} bytes of a shard are no multiple of ${step_bytes} within its room`)
  }
  const encode = (bytes: number) => {
    kernels.encode(address(0), stride, data_shards, checked(bytes))
  }
  /** One data shard, of P and the other data shards. */
  const rebuildOne = (lost: number, bytes: number) => {
    listOthers(list, data_and_p, lost)
    kernels.xor(address(lost), 0, bytes)
  }
  /** One data shard of Q, or two of P and Q. */
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
    const gone = [...new Set(lost)].sort((one, other) => one - other)
    if (gone.length > parity_shards) {
      throw new Error(`${gone.length} shards are lost, and two may be`)
    }
    const [first, second] = gone
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
