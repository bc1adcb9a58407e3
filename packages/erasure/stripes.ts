/**
 * How a blob becomes shards: stripes of one unit for each data shard, one behind the other, and of
 * each stripe two units of parity. A shard is its units in order. So bytes are coded while they
 * come, and a range needs a few units of each shard.
 *
 * A unit is 64 KiB. The last stripe's units are shorter, as long as what is left needs, and what
 * they hold behind the blob's end is zero.
 *
 * Source: document 1 §2 Replication policies; blob facts §2.
 */
import type { ErasureCode } from "./code.ts"
import { step_bytes } from "./kernel.ts"

export const unit_bytes = 64 * 1024

/** Of a blob of `size` bytes over `data_shards`: what its shards are cut into. */
export interface Striping {
  readonly size: number
  readonly data_shards: number
  readonly stripes: number
  /** Bytes of each shard, the parity too. */
  readonly shard_bytes: number
  /** Bytes of one unit of a stripe. */
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

/** Which stripes a range of the blob lies in: from the first, and before `end`. */
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

/** A stripe's units: of the data shards, then P, then Q. */
export type Units = ReadonlyArray<Uint8Array>

/** Parts one behind the other, and zeros up to `length`; as it is where one part is all. */
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
 * Codes bytes as they come. `push` answers the stripes that become full, one when it is asked for,
 * and `end` the last one. Units of data are the bytes themselves where a unit came in one piece: so
 * what is pushed must not change before they are done with.
 */
export const stripeEncoder = (code: ErasureCode) => {
  const { data_shards } = code
  let units: Array<Uint8Array> = []
  /** What has come of the next unit. */
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
    /** The last stripe, where there is one: what is behind its end is zero. */
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

/** What there is of a stripe: undefined where a unit was lost. */
export type GivenUnits = ReadonlyArray<Uint8Array | undefined>

/** Puts what is given of a stripe into the code, and answers what is lost, and a unit's bytes. */
const take = (code: ErasureCode, given: GivenUnits) => {
  const lost: Array<number> = []
  let bytes = 0
  for (const [shard, unit] of given.entries()) {
    if (unit === undefined) lost.push(shard)
    else code.shard(shard).set(unit)
    bytes = unit?.length ?? bytes
  }
  return { lost, bytes }
}

/** Makes the lost units of a stripe of those that are given: at most two may be lost. */
export const rebuiltUnits = (code: ErasureCode, given: GivenUnits): Units => {
  const { lost, bytes } = take(code, given)
  code.rebuild(lost, bytes)
  return given.map((unit, shard) => unit ?? code.shard(shard).slice(0, bytes))
}

/** The data units of a stripe: those that are given, and the lost ones made of the others. */
const dataUnits = (code: ErasureCode, given: GivenUnits): Units => {
  const data = given.slice(0, code.data_shards)
  const whole = data.filter((unit) => unit !== undefined)
  if (whole.length === data.length) return whole
  const { lost, bytes } = take(code, given)
  code.rebuildData(lost, bytes)
  return data.map((unit, shard) => unit ?? code.shard(shard).slice(0, bytes))
}

/**
 * The blob's bytes of one stripe, without what is behind its end. Only the data units that were
 * lost are made: nothing where all of them are given.
 */
export const dataOfStripe = (
  code: ErasureCode,
  { size, data_shards }: Striping,
  stripe: number,
  given: GivenUnits,
): ReadonlyArray<Uint8Array> => {
  let left = size - stripe * data_shards * unit_bytes
  return dataUnits(code, given).flatMap((unit) => {
    if (left <= 0) return []
    const part = unit.subarray(0, left)
    left -= unit.length
    return [part]
  })
}
