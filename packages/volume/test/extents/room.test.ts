/**
 * The room of a file of extents against a plain map of its pages.
 */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import { makeRoom, page_bytes, type Stretch, toPages } from "../../extents/room.ts"

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

type PageState = "taken" | "free" | "new"

/** Pages of a file that were written before, where it may grow. */
const written = 20
const growth = fc.record({
  kind: fc.constantFrom("take", "new", "new", "at", "give", "give", "unwritten", "unwritten"),
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

  it("grows to its limit, and forgets what nobody wrote to", () => {
    const agrees = (
      steps: ReadonlyArray<typeof growth extends fc.Arbitrary<infer A> ? A : never>,
    ) => {
      const room = makeRoom(stretchOf(0, written), pages * page_bytes)
      const map = Array.from(
        { length: pages },
        (_, page): PageState => (page < written ? "free" : "new"),
      )
      let written_end = written
      const reached = () => map.filter((state) => state !== "new").length
      const taken: Array<Stretch> = []
      const took = (stretch: Stretch) => {
        const [first, end] = [stretch.start / page_bytes, stretch.end / page_bytes]
        assert(!map.slice(first, end).includes("taken") && end <= pages)
        for (let page = reached(); page < first; page++) map[page] = "free"
        map.fill("taken", first, end)
        taken.push(stretch)
      }
      for (const { kind, page, count } of steps) {
        const bytes = count * page_bytes
        if (kind === "take") {
          const start = room.take(bytes)
          if (start !== undefined) took({ start, end: start + bytes })
          assert(reached() * page_bytes === room.reached(), "what was written is enough")
        } else if (kind === "new") {
          const start = room.takeNew(bytes)
          const tail = map.lastIndexOf("taken") + 1
          const from = Math.max(tail, map.slice(0, reached()).lastIndexOf("taken") + 1)
          assert.equal(start, from + count > pages ? undefined : from * page_bytes)
          if (start !== undefined) took({ start, end: start + bytes })
        } else if (kind === "at") {
          const stretch = stretchOf(page, count)
          const is_free = page + count <= pages && !map.slice(page, page + count).includes("taken")
          assert.equal(room.takeAt(stretch), is_free)
          if (is_free) took(stretch)
        } else {
          const [stretch] = taken.splice(page % Math.max(1, taken.length), 1)
          if (!stretch) continue
          const [first, end] = [stretch.start / page_bytes, stretch.end / page_bytes]
          const is_end = kind === "unwritten" && end === reached()
          map.fill("free", first, end)
          if (is_end) map.fill("new", Math.max(first, written_end), end)
          if (kind === "give") written_end = Math.max(written_end, end)
          if (kind === "unwritten") room.giveUnwritten(stretch)
          else room.give(stretch)
        }
        assert.equal(room.reached(), reached() * page_bytes)
        assert.equal(room.unreachedBytes(), (pages - reached()) * page_bytes)
        assert.equal(room.freeBytes(), map.filter((one) => one === "free").length * page_bytes)
      }
    }
    fc.assert(fc.property(fc.array(growth, { maxLength: 80 }), agrees), { numRuns: 300 })
  })

  it("takes what a record names behind the end of its file", () => {
    const room = makeRoom(stretchOf(0, 4))
    room.takeKept(stretchOf(6, 2))
    assert.deepEqual(room.stretches(), [stretchOf(0, 6)])
    room.give(stretchOf(6, 2))
    assert.deepEqual([room.freeBytes(), room.unreachedBytes()], [8 * page_bytes, 0])
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
