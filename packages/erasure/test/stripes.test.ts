import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import fc from "fast-check"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { erasureCode } from "../code.ts"
import {
  dataOfStripe,
  rebuiltUnits,
  stripeEncoder,
  stripesOf,
  striping,
  type Units,
  unit_bytes,
} from "../stripes.ts"

const codes = new Map([4, 8].map((shards) => [shards, erasureCode(shards, unit_bytes)]))
const codeOf = (data_shards: number) => {
  const code = codes.get(data_shards)
  assert.ok(code)
  return code
}

/** The stripes of bytes that arrive in parts of `cut`. */
const encoded = (data_shards: number, bytes: Uint8Array, cut: number) => {
  const encoder = stripeEncoder(codeOf(data_shards))
  const stripes: Array<Units> = []
  for (let at = 0; at < bytes.length; at += cut) {
    stripes.push(...encoder.push(bytes.subarray(at, at + cut)))
  }
  const last = encoder.end()
  return last === undefined ? stripes : [...stripes, last]
}

const sizes = fc.oneof(
  fc.integer({ min: 0, max: 5000 }),
  fc.integer({ min: 0, max: 20 * unit_bytes }),
  fc.constantFrom(4, 8).map((shards) => shards * unit_bytes),
)

describe("a blob's shards", () => {
  it("have the declared length for any size of the blob", () => {
    fc.assert(
      fc.property(
        sizes,
        fc.constantFrom(4, 8),
        fc.integer({ min: 1, max: 2 ** 20 }),
        (...available) => {
          const [size, data_shards, cut] = available
          const stripes = encoded(data_shards, noise(size, size), cut)
          const { shard_bytes, unitOf, ...plan } = striping(size, data_shards)
          assert.equal(stripes.length, plan.stripes)
          for (let shard = 0; shard < data_shards + 2; shard++) {
            const units = stripes.map((stripe) => stripe[shard]?.length ?? 0)
            assert.deepEqual(
              units,
              stripes.map((_, stripe) => unitOf(stripe)),
            )
            assert.equal(
              units.reduce((sum, bytes) => sum + bytes, 0),
              shard_bytes,
            )
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it("restore the blob, and each other, after the loss of any two", () => {
    const lost = fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 2 })
    fc.assert(
      fc.property(sizes, fc.constantFrom(4, 8), lost, (size, data_shards, gone) => {
        const code = codeOf(data_shards)
        const bytes = noise(size + 1, size)
        const plan = striping(size, data_shards)
        const parts = encoded(data_shards, bytes, 100_000).flatMap((units, stripe) => {
          const available = units.map((unit, shard) => (gone.includes(shard) ? undefined : unit))
          assert.deepEqual(rebuiltUnits(code, available), units)
          return dataOfStripe(code, plan, stripe, available)
        })
        assert.ok(Buffer.concat(parts).equals(bytes))
      }),
      { numRuns: 60 },
    )
  })

  it("of a small blob are a quarter or an eighth of it, rounded up to 64 bytes", () => {
    assert.equal(striping(4096, 4).shard_bytes, 1024)
    assert.equal(striping(4097, 4).shard_bytes, 1088)
    assert.equal(striping(1, 8).shard_bytes, 64)
    assert.equal(striping(0, 4).shard_bytes, 0)
    assert.equal(striping(16 * 1024 * 1024, 8).shard_bytes, 2 * 1024 * 1024)
  })

  it("are read only for the stripes of a range", () => {
    const plan = striping(10 * 4 * unit_bytes + 5, 4)
    assert.deepEqual(stripesOf(plan, 0, 1), { first: 0, end: 1 })
    assert.deepEqual(stripesOf(plan, 4 * unit_bytes - 1, 2), { first: 0, end: 2 })
    assert.deepEqual(stripesOf(plan, 4 * unit_bytes, 1), { first: 1, end: 2 })
    assert.deepEqual(stripesOf(plan, 10 * 4 * unit_bytes, 1e9), { first: 10, end: 11 })
    assert.deepEqual(stripesOf(plan, 1e9, 5), { first: 0, end: 0 })
    assert.deepEqual(stripesOf(plan, 0, 0), { first: 0, end: 0 })
  })

  it("cannot be reconstructed if three are lost", () => {
    const [units] = encoded(4, noise(1, 1000), 1000)
    assert.ok(units)
    const given = units.map((unit, shard) => (shard < 3 ? undefined : unit))
    assert.throws(() => rebuiltUnits(codeOf(4), given), /more than two/)
  })
})
