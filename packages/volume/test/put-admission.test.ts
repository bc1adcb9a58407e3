import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { admit, type OfferedBlob } from "../writes/put-admission.ts"

const id = "6437b3ac38465133ffb63b75273a8db5" as BlobId
const offered: OfferedBlob = {
  id,
  checksum: "one",
  policy: "REPLICATION_POLICY_UNSPECIFIED",
  expected_id: undefined,
  if_none_match: false,
}
const present = { checksum: "one", policy: "REPLICATION_POLICY_REPLICA3" } as const

describe("the admission of a put", () => {
  it("stores what is not there and keeps what is", () => {
    assert.deepEqual(admit(offered, undefined), { verdict: "store" })
    assert.deepEqual(admit(offered, present), { verdict: "keep" })
  })
  it("rejects different bytes under the same identifier, with any options", () => {
    const other = { ...present, checksum: "two" }
    assert.equal(admit(offered, other).verdict, "exists")
    const same_policy = { ...offered, policy: present.policy, expected_id: id }
    assert.equal(admit(same_policy, other).verdict, "exists")
  })
  it("refuses another expected identifier before anything else", () => {
    const expected = "00000000000000000000000000000000" as BlobId
    const mismatch = { verdict: "mismatch", expected } as const
    const strict = { ...offered, expected_id: expected, if_none_match: true }
    assert.deepEqual(admit(strict, undefined), mismatch)
    assert.deepEqual(admit(strict, present), mismatch)
  })
})
