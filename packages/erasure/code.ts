/**
 * The erasure code: two parity shards over some data shards, of which any two may be lost.
 *
 * A code has one stretch of memory in which its shards stand; who has bytes for one puts them there
 * and reads the others there, so that nothing is copied between the two.
 *
 * Source: document 1 §2 Replication policies, EC42 and EC82.
 */
import { encodeKernel, rebuildKernel, step_bytes, xorKernel } from "./kernel.ts"

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

type Run = (...addresses: ReadonlyArray<number>) => void

/** A code of `data_shards` and two parities, with room for shards of `shard_bytes_max`. */
export const erasureCode = (data_shards: number, shard_bytes_max: number): ErasureCode => {
  if (shard_bytes_max <= 0 || shard_bytes_max % step_bytes !== 0) {
    throw new Error(`a shard's room must be a multiple of ${step_bytes} bytes`)
  }
  const at_p = data_shards
  // The tables have a page of their own, before the shards.
  const room = page_bytes + (data_shards + parity_shards) * shard_bytes_max
  const memory = new WebAssembly.Memory({ initial: Math.ceil(room / page_bytes) })
  const address = (at: number) => page_bytes + at * shard_bytes_max
  const addresses = Array.from({ length: data_shards + parity_shards }, (_, at) => address(at))
  const kernels = new Map<string, Run>()
  const tables = new Uint8Array(memory.buffer, 0, 2 * table_bytes)
  let table_factor = 0

  const kernel = (name: string, make: () => Uint8Array<ArrayBuffer>) => {
    const known = kernels.get(name)
    if (known !== undefined) return known
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(make()), {
      erasure: { memory },
    })
    // The kernels export this one function, of numbers.
    const run = exports.run as Run
    kernels.set(name, run)
    return run
  }
  const checked = (bytes: number) => {
    if (bytes > 0 && bytes <= shard_bytes_max && bytes % step_bytes === 0) return bytes
    throw new Error(`${bytes} bytes of a shard are no multiple of ${step_bytes} within its room`)
  }
  const encode = (bytes: number) => {
    kernel("encode", () => encodeKernel(data_shards))(...addresses, checked(bytes))
  }
  /** One data shard, of P and the other data shards. */
  const rebuildOne = (lost: number, bytes: number) => {
    const given = addresses.slice(0, data_shards).with(lost, address(at_p))
    kernel("xor", () => xorKernel(data_shards))(...given, address(lost), bytes)
  }
  /** One data shard of Q, or two of P and Q. */
  const rebuildByQ = (bytes: number, first: number, second?: number) => {
    const name = `rebuild ${first} ${second}`
    const run = kernel(name, () => rebuildKernel(data_shards, first, second))
    const divisor = power(first) ^ (second === undefined ? 0 : power(second))
    const factor = inverses[divisor] ?? 0
    if (factor !== table_factor) tables.set(tablesOf(factor))
    table_factor = factor
    run(...addresses, bytes, 0)
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
