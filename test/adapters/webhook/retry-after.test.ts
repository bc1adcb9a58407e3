import { assert, describe, it } from "@effect/vitest"
import { retryAfterOf } from "#adapters/outside/retry-after.ts"

describe("Retry-After", () => {
  it("is seconds, a date, or nothing that we know", () => {
    const now = Date.parse("2026-01-01T00:00:00Z")
    assert.equal(retryAfterOf("120", now), 120_000)
    assert.equal(retryAfterOf(" 0 ", now), 0)
    assert.equal(retryAfterOf("Thu, 01 Jan 2026 00:01:00 GMT", now), 60_000)
    assert.equal(retryAfterOf("Wed, 31 Dec 2025 00:01:00 GMT", now), 0)
    for (const odd of [undefined, "", "soon", "-5", "1e9", "99999999999", "2026-01-01"]) {
      assert.isUndefined(retryAfterOf(odd, now))
    }
  })
})
