/** The hash of a small blob does not depend on how its bytes are cut. */
import assert from "node:assert/strict"
import { blake3 } from "@napi-rs/blake-hash"
import fc from "fast-check"
import { it } from "vitest"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { hashHex } from "../../writes/puts.ts"

it("is that of all parts in order, regardless of earlier hashes", () => {
  const lengths = fc.array(fc.oneof(fc.nat(300), fc.nat(90_000), fc.constant(65_280)), {
    maxLength: 5,
  })
  const isHashed = (given: ReadonlyArray<number>) => {
    const parts = given.map((length, n) => noise(n, length))
    assert.equal(hashHex(parts), blake3(Buffer.concat(parts)).toString("hex"))
  }
  fc.assert(fc.property(lengths, isHashed), { numRuns: 100 })
})
