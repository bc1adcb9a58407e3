/** The free space of an extent file, compared with a plain map of its pages. */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import { makeFreeMap, page_bytes, type Span, toPages } from "../../extents/free-map.ts"

const pages = 64
const spanOf = (page: number, count: number): Span => ({
  start: page * page_bytes,
  end: (page + count) * page_bytes,
})

/** The same, page by page. */
const makeNaive = () => {
  const free = Array.from({ length: pages }, () => true)
  const runs = () => {
    const found: Array<Span> = []
    for (let page = 0; page < pages; page++) {
      if (!free[page]) continue
      const start = page
      while (page < pages && free[page]) page++
      found.push(spanOf(start, page - start))
    }
    return found
  }
  const mark = ({ start, end }: Span, value: boolean) =>
    free.fill(value, start / page_bytes, end / page_bytes)
  const isFree = ({ start, end }: Span) =>
    end <= pages * page_bytes && free.slice(start / page_bytes, end / page_bytes).every(Boolean)
  return { runs, mark, isFree }
}

const step = fc.record({
  kind: fc.constantFrom("take", "most", "at", "give", "give", "give"),
  page: fc.nat(pages - 1),
  count: fc.integer({ min: 1, max: 20 }),
})

type PageState = "taken" | "free" | "new"

/** Pages of a file that were written before, of those it may grow to. */
const written = 20
const growth = fc.record({
  kind: fc.constantFrom("take", "new", "new", "at", "give", "give", "unwritten", "unwritten"),
  page: fc.nat(pages - 1),
  count: fc.integer({ min: 1, max: 20 }),
})

describe("the free space of an extent file", () => {
  it("matches a map of its pages after any history", () => {
    const agrees = (
      steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>,
    ) => {
      const room = makeFreeMap(spanOf(0, pages))
      const naive = makeNaive()
      const taken: Array<Span> = []
      const took = (span: Span) => {
        assert(naive.isFree(span), "what was given out was free")
        naive.mark(span, false)
        taken.push(span)
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
          const span = spanOf(page, count)
          const is_free = naive.isFree(span)
          assert.equal(room.takeAt(span), is_free)
          if (is_free) took(span)
        } else {
          const [span] = taken.splice(page % Math.max(1, taken.length), 1)
          if (!span) continue
          room.release(span)
          naive.mark(span, true)
        }
        assert.deepEqual(room.spans(), naive.runs())
        const free = naive.runs().reduce((sum, { start, end }) => sum + end - start, 0)
        assert.equal(room.freeBytes(), free)
      }
    }
    fc.assert(fc.property(fc.array(step, { maxLength: 80 }), agrees), { numRuns: 300 })
  })

  it("grows to the file's limit, and forgets unwritten pages", () => {
    const agrees = (
      steps: ReadonlyArray<typeof growth extends fc.Arbitrary<infer A> ? A : never>,
    ) => {
      const room = makeFreeMap(spanOf(0, written), pages * page_bytes)
      const map = Array.from(
        { length: pages },
        (_, page): PageState => (page < written ? "free" : "new"),
      )
      let written_end = written
      const reached = () => map.filter((state) => state !== "new").length
      const taken: Array<Span> = []
      const took = (span: Span) => {
        const [first, end] = [span.start / page_bytes, span.end / page_bytes]
        assert(!map.slice(first, end).includes("taken") && end <= pages)
        for (let page = reached(); page < first; page++) map[page] = "free"
        map.fill("taken", first, end)
        taken.push(span)
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
          const span = spanOf(page, count)
          const is_free = page + count <= pages && !map.slice(page, page + count).includes("taken")
          assert.equal(room.takeAt(span), is_free)
          if (is_free) took(span)
        } else {
          const [span] = taken.splice(page % Math.max(1, taken.length), 1)
          if (!span) continue
          const [first, end] = [span.start / page_bytes, span.end / page_bytes]
          const is_end = kind === "unwritten" && end === reached()
          map.fill("free", first, end)
          if (is_end) map.fill("new", Math.max(first, written_end), end)
          if (kind === "give") written_end = Math.max(written_end, end)
          if (kind === "unwritten") room.releaseUnwritten(span)
          else room.release(span)
        }
        assert.equal(room.reached(), reached() * page_bytes)
        assert.equal(room.unreachedBytes(), (pages - reached()) * page_bytes)
        assert.equal(room.freeBytes(), map.filter((one) => one === "free").length * page_bytes)
      }
    }
    fc.assert(fc.property(fc.array(growth, { maxLength: 80 }), agrees), { numRuns: 300 })
  })

  it("takes a span that a record refers to beyond the end of the file", () => {
    const room = makeFreeMap(spanOf(0, 4))
    room.takeOwned(spanOf(6, 2))
    assert.deepEqual(room.spans(), [spanOf(0, 6)])
    room.release(spanOf(6, 2))
    assert.deepEqual([room.freeBytes(), room.unreachedBytes()], [8 * page_bytes, 0])
  })

  it("is never freed twice", () => {
    const room = makeFreeMap(spanOf(0, 8))
    assert.equal(room.take(3 * page_bytes), 0)
    room.release(spanOf(1, 1))
    assert.throws(() => room.release(spanOf(1, 1)))
    assert.throws(() => room.release(spanOf(0, 2)))
    assert.throws(() => room.release(spanOf(2, 2)))
  })

  it("counts in pages", () => {
    assert.deepEqual([0, 1, 4096, 4097].map(toPages), [0, 4096, 4096, 8192])
  })
})
