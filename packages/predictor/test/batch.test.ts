/** How many images a network is given at once, by how long its runs take. */
import { describe, expect, it } from "vitest"
import { fastestBatch } from "../batch.ts"

/** Runs that take so long, by a clock of their own; and what they were run with. */
const timed = (run_ms: (count: number, nth: number) => number) => {
  let now = 0
  const counts: Array<number> = []
  const run = async (count: number) => {
    now += run_ms(count, counts.length)
    counts.push(count)
  }
  return { counts, fastest: (batch_max: number) => fastestBatch(run, batch_max, () => now) }
}

describe("the images of one run", () => {
  it("are as many as possible where all together cost hardly more than one", async () => {
    expect(await timed((count) => 5 + count).fastest(8)).toBe(8)
    expect(await timed((count) => 5 + count).fastest(6)).toBe(6)
  })

  it("are one where more take longer for each, or as long", async () => {
    expect(await timed((count) => count * (4 + count / 10)).fastest(8)).toBe(1)
    expect(await timed((count) => count * 4).fastest(8)).toBe(1)
    expect(await timed((count) => (count === 1 ? 4 : count * 3.7)).fastest(8)).toBe(1)
  })

  it("are those between where these are the fastest", async () => {
    expect(await timed((count) => (count === 4 ? 8 : count * 4)).fastest(8)).toBe(4)
  })

  it("hang on the best run of each size, whatever held up the others", async () => {
    const held = (nth: number) => (nth < 12 ? 50 : 0)
    expect(await timed((count, nth) => held(nth) + 5 + count).fastest(8)).toBe(8)
    expect(await timed((count, nth) => held(nth) + count * 4).fastest(8)).toBe(1)
  })

  it("take turns, so that what holds the machine up for a while decides nothing", async () => {
    const begins_slowly = timed((count, nth) => (nth < 4 ? 10 : 1) * count * 4)
    expect(await begins_slowly.fastest(8)).toBe(1)
    expect(begins_slowly.counts.slice(0, 5)).toEqual([1, 2, 4, 8, 1])
  })

  it("are as many as possible of a network that takes less than a millisecond", async () => {
    const short = timed((count) => count * 0.9)
    expect(await short.fastest(8)).toBe(8)
    expect(new Set(short.counts)).toEqual(new Set([1]))
  })

  it("are never more than may be, and are not sought for longer than a second", async () => {
    const single = timed(() => 20)
    expect(await single.fastest(1)).toBe(1)
    expect(new Set(single.counts)).toEqual(new Set([1]))
    const slow = timed((count) => 600 * count)
    expect(await slow.fastest(8)).toBe(1)
    expect(slow.counts).toEqual([1, 2])
  })
})
