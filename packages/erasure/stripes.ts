/**
 * Splits a blob into stripes of one unit per data shard, with two parity units each. A shard is the
 * sequence of its units. So a blob can be encoded while it arrives, and a range needs only a few
 * units of each shard.
 *
 * A unit is 64 KiB. The units of the last stripe are as short as the remaining bytes allow, and
 * padded with zeros.
 *
 * Source: document 1 §2 Replication policies; blob facts §2.
 */
import type { ErasureCode } from "./code.ts"
import { step_bytes } from "./kernel.ts"

export const unit_bytes = 64 * 1024

/** The division of a blob into stripes and shards. */
export interface Striping {
  readonly size: number
  readonly data_shards: number
  readonly stripes: number
  /** Length of each shard, including parity. */
  readonly shard_bytes: number
  /** Length of the units of a stripe. */
  readonly unitOf: (stripe: number) => number
}

export const striping = (size: number, data_shards: number): Striping => {
  const stripe_bytes = data_shards * unit_bytes
  const whole = Math.floor(size / stripe_bytes)
  const rest = size - whole * stripe_bytes
  const last_unit = step_bytes * Math.ceil(rest / (data_shards * step_bytes))
  return {
    size,
    data_shards,
    stripes: whole + (rest > 0 ? 1 : 0),
    shard_bytes: whole * unit_bytes + last_unit,
    unitOf: (stripe) => (stripe < whole ? unit_bytes : last_unit),
  }
}

/** The stripes that contain a range of the blob; `end` is exclusive. */
export const stripesOf = (
  { size, data_shards, stripes }: Striping,
  from: number,
  bytes: number,
) => {
  const stripe_bytes = data_shards * unit_bytes
  const to = Math.min(from + bytes, size)
  if (from >= to) return { first: 0, end: 0 }
  return {
    first: Math.floor(from / stripe_bytes),
    end: Math.min(Math.ceil(to / stripe_bytes), stripes),
  }
}

/** The units of a stripe: data shards, then P, then Q. */
export type Units = ReadonlyArray<Uint8Array>

/**
 * Concatenates parts, padded with zeros to `length`. A single part of that length is returned as
 * is.
 */
export const joined = (parts: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const [only] = parts
  if (only?.length === length) return only
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/**
 * Encodes bytes as they arrive. `push` yields each stripe that becomes full, lazily, and `end`
 * returns the last one. A data unit that arrived in one piece is not copied, so the caller must not
 * change pushed bytes until the stripes are used.
 */
export const stripeEncoder = (code: ErasureCode) => {
  const { data_shards } = code
  let units: Array<Uint8Array> = []
  /** The parts of the current unit. */
  let parts: Array<Uint8Array> = []
  let used = 0

  const coded = (data: Units, bytes: number): Units => {
    for (const [shard, unit] of data.entries()) code.shard(shard).set(unit)
    code.encode(bytes)
    const parity = [data_shards, data_shards + 1].map((shard) => code.shard(shard).slice(0, bytes))
    return [...data, ...parity]
  }
  const closeUnit = () => {
    units.push(joined(parts, unit_bytes))
    parts = []
    used = 0
  }
  return {
    *push(bytes: Uint8Array): Generator<Units, void> {
      for (let at = 0; at < bytes.length; ) {
        const part = bytes.subarray(at, at + unit_bytes - used)
        at += part.length
        used += part.length
        parts.push(part)
        if (used < unit_bytes) continue
        closeUnit()
        if (units.length < data_shards) continue
        const data = units
        units = []
        yield coded(data, unit_bytes)
      }
    },
    /** The last stripe, if any, padded with zeros. */
    end: (): Units | undefined => {
      const left = units.length * unit_bytes + used
      if (left === 0) return undefined
      const bytes = striping(left, data_shards).unitOf(0)
      const stripe = joined([...units, ...parts], data_shards * bytes)
      const data = Array.from({ length: data_shards }, (_, shard) =>
        stripe.subarray(shard * bytes, (shard + 1) * bytes),
      )
      return coded(data, bytes)
    },
  }
}

/** The available units of a stripe; undefined for lost ones. */
export type AvailableUnits = ReadonlyArray<Uint8Array | undefined>

/** Loads the available units into the code; returns the lost indexes and the unit length. */
const take = (code: ErasureCode, available: AvailableUnits) => {
  const lost: Array<number> = []
  let bytes = 0
  for (const [shard, unit] of available.entries()) {
    if (unit === undefined) lost.push(shard)
    else code.shard(shard).set(unit)
    bytes = unit?.length ?? bytes
  }
  return { lost, bytes }
}

/** Reconstructs the lost units of a stripe, at most two. */
export const rebuiltUnits = (code: ErasureCode, available: AvailableUnits): Units => {
  const { lost, bytes } = take(code, available)
  code.rebuild(lost, bytes)
  return available.map((unit, shard) => unit ?? code.shard(shard).slice(0, bytes))
}

/** The data units of a stripe, with lost ones reconstructed. */
const dataUnits = (code: ErasureCode, available: AvailableUnits): Units => {
  const data = available.slice(0, code.data_shards)
  const whole = data.filter((unit) => unit !== undefined)
  if (whole.length === data.length) return whole
  const { lost, bytes } = take(code, available)
  code.rebuildData(lost, bytes)
  return data.map((unit, shard) => unit ?? code.shard(shard).slice(0, bytes))
}

/** The blob's bytes in one stripe, without padding. Reconstructs lost data units only. */
export const dataOfStripe = (
  code: ErasureCode,
  { size, data_shards }: Striping,
  stripe: number,
  available: AvailableUnits,
): ReadonlyArray<Uint8Array> => {
  let left = size - stripe * data_shards * unit_bytes
  return dataUnits(code, available).flatMap((unit) => {
    if (left <= 0) return []
    const part = unit.subarray(0, left)
    left -= unit.length
    return [part]
  })
}
