/**
 * The room of a file of extents against a plain map of its pages.
 */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import { makeRoom, page_bytes, type Stretch, toPages } from "#adapters/volume-room.ts"

const pages = 64
const stretchOf = (page: number, count: number): Stretch => ({
  start: page * page_bytes,
  end: (page + count) * page_bytes,
})

/** The same, page by page. */
const makeNaive = () => {
  const free = Array.from({ length: pages }, () => true)
  const runs = () => {
    const found: Array<Stretch> = []
    for (let page = 0; page < pages; page++) {
      if (!free[page]) continue
      const start = page
      while (page < pages && free[page]) page++
      found.push(stretchOf(start, page - start))
    }
    return found
  }
  const mark = ({ start, end }: Stretch, value: boolean) =>
    free.fill(value, start / page_bytes, end / page_bytes)
  const isFree = ({ start, end }: Stretch) =>
    end <= pages * page_bytes && free.slice(start / page_bytes, end / page_bytes).every(Boolean)
  return { runs, mark, isFree }
}

const step = fc.record({
  kind: fc.constantFrom("take", "most", "at", "give", "give", "give"),
  page: fc.nat(pages - 1),
  count: fc.integer({ min: 1, max: 20 }),
})

describe("the room of a file of extents", () => {
  it("is what a map of its pages says, whatever is taken and given", () => {
    const agrees = (
      steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>,
    ) => {
      const room = makeRoom(stretchOf(0, pages))
      const naive = makeNaive()
      const taken: Array<Stretch> = []
      const took = (stretch: Stretch) => {
        assert(naive.isFree(stretch), "what was given out was free")
        naive.mark(stretch, false)
        taken.push(stretch)
      }
      for (const { kind, page, count } of steps) {
        const bytes = count * page_bytes
        const longest = Math.max(0, ...naive.runs().map(({ start, end }) => end - start))
        if (kind === "take") {
          const start = room.take(bytes)
          assert.equal(start === undefined, longest < bytes)
          if (start !== undefined) took({ start, end: start + bytes })
        } else if (kind === "most") {
          const most = room.takeMost(bytes, 2 * bytes)
          assert.equal(
            most && most.end - most.start,
            longest < bytes ? undefined : Math.min(longest, 2 * bytes),
          )
          if (most) took(most)
        } else if (kind === "at") {
          const stretch = stretchOf(page, count)
          const is_free = naive.isFree(stretch)
          assert.equal(room.takeAt(stretch), is_free)
          if (is_free) took(stretch)
        } else {
          const [stretch] = taken.splice(page % Math.max(1, taken.length), 1)
          if (!stretch) continue
          room.give(stretch)
          naive.mark(stretch, true)
        }
        assert.deepEqual(room.stretches(), naive.runs())
        const free = naive.runs().reduce((sum, { start, end }) => sum + end - start, 0)
        assert.equal(room.freeBytes(), free)
      }
    }
    fc.assert(fc.property(fc.array(step, { maxLength: 80 }), agrees), { numRuns: 300 })
  })

  it("is never given back twice", () => {
    const room = makeRoom(stretchOf(0, 8))
    assert.equal(room.take(3 * page_bytes), 0)
    room.give(stretchOf(1, 1))
    assert.throws(() => room.give(stretchOf(1, 1)))
    assert.throws(() => room.give(stretchOf(0, 2)))
    assert.throws(() => room.give(stretchOf(2, 2)))
  })

  it("counts in pages", () => {
    assert.deepEqual([0, 1, 4096, 4097].map(toPages), [0, 4096, 4096, 8192])
  })
})
