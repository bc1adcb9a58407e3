import { assert, describe, it } from "@effect/vitest"
import { derivedId, timeOfId } from "#actors/share-protection/derived-id.ts"

describe("a derived id", () => {
  const at = "2026-01-02T03:04:05.678Z"

  it("is the same only for the same cause and time", () => {
    const id = derivedId("a", at)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.equal(derivedId("a", at), id)
    assert.notEqual(derivedId("b", at), id)
  })

  it("contains its time", () => {
    assert.equal(timeOfId(derivedId("a", at)), Date.parse(at))
  })
})
