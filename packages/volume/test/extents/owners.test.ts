/** The owner table, compared with a plain map of a file's pages. */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { page_bytes } from "../../extents/free-map.ts"
import { makeOwnerTable, type OwnedSpan } from "../../extents/owners.ts"

const ids = ["0123456789abcdef0123456789abcdef", "00000000ffffffff80000000000000a1"].map(
  // Both are 32 hex characters.
  (id) => id as BlobId,
)
const pages = 40

const step = fc.record({
  kind: fc.constantFrom("keep", "free", "free kept"),
  page: fc.nat(pages - 1),
  count: fc.integer({ min: 1, max: 6 }),
  id: fc.constantFrom(...ids),
})
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const overlaps = (one: OwnedSpan, other: OwnedSpan) =>
  one.start < other.end && other.start < one.end

describe("the owned spans of an extent file", () => {
  it("are those assigned last and not freed, with their owners", () => {
    const agrees = (steps: ReadonlyArray<Step>) => {
      let kept = makeOwnerTable()
      let naive: Array<OwnedSpan> = []
      for (const { kind, page, count, id } of steps) {
        const some = naive[page % Math.max(1, naive.length)]
        const there = { start: page * page_bytes, end: (page + count) * page_bytes, id }
        const span = kind === "free kept" && some ? { ...some, id } : there
        const is_there = naive.some(
          (one) => one.start === span.start && one.end === span.end && one.id === id,
        )
        assert.equal(kept.has(span, id), is_there)
        if (kind === "keep") {
          const evicted = naive.filter((one) => overlaps(one, span))
          assert.deepEqual(kept.keep(span, id), is_there ? [] : evicted)
          naive = naive.filter((one) => !overlaps(one, span))
          naive.push(span)
          naive.sort((one, other) => one.start - other.start)
        } else {
          assert.equal(kept.free(span, id), is_there)
          if (is_there) naive = naive.filter((one) => one.start !== span.start)
        }
        assert.deepEqual(kept.entries(), naive)
        assert.equal(kept.count(), naive.length)
        if (page % 7 === 0) kept = makeOwnerTable(kept.image())
      }
    }
    fc.assert(fc.property(fc.array(step, { maxLength: 100 }), agrees), { numRuns: 300 })
  })
})
