/** The batch size that `fastestBatch` chooses for given run times. */
import { describe, expect, it } from "vitest"
import { fastestBatch } from "../batch.ts"

/** Simulates run times with a clock of its own and records the batch sizes. */
const simulate = (run_ms: (count: number, nth: number) => number) => {
  let now = 0
  const counts: Array<number> = []
  const run = async (count: number) => {
    now += run_ms(count, counts.length)
    counts.push(count)
  }
  return { counts, fastest: (batch_max: number) => fastestBatch(run, batch_max, () => now) }
}

describe("the fastest batch size", () => {
  it("is the largest if a batch costs hardly more than one image", async () => {
    expect(await simulate((count) => 5 + count).fastest(8)).toBe(8)
    expect(await simulate((count) => 5 + count).fastest(6)).toBe(6)
  })

  it("is one if larger batches are slower or equal per image", async () => {
    expect(await simulate((count) => count * (4 + count / 10)).fastest(8)).toBe(1)
    expect(await simulate((count) => count * 4).fastest(8)).toBe(1)
    expect(await simulate((count) => (count === 1 ? 4 : count * 3.7)).fastest(8)).toBe(1)
  })

  it("may be between one and the largest", async () => {
    expect(await simulate((count) => (count === 4 ? 8 : count * 4)).fastest(8)).toBe(4)
  })

  it("depends on the best run of each size, not on slower ones", async () => {
    const delay = (nth: number) => (nth < 12 ? 50 : 0)
    expect(await simulate((count, nth) => delay(nth) + 5 + count).fastest(8)).toBe(8)
    expect(await simulate((count, nth) => delay(nth) + count * 4).fastest(8)).toBe(1)
  })

  it("is measured in turns, so that a slow start of the machine does not matter", async () => {
    const slow_start = simulate((count, nth) => (nth < 4 ? 10 : 1) * count * 4)
    expect(await slow_start.fastest(8)).toBe(1)
    expect(slow_start.counts.slice(0, 5)).toEqual([1, 2, 4, 8, 1])
  })

  it("is the largest for a network that takes less than a millisecond", async () => {
    const short = simulate((count) => count * 0.9)
    expect(await short.fastest(8)).toBe(8)
    expect(new Set(short.counts)).toEqual(new Set([1]))
  })

  it("is at most the limit, and is measured for at most a second", async () => {
    const single = simulate(() => 20)
    expect(await single.fastest(1)).toBe(1)
    expect(new Set(single.counts)).toEqual(new Set([1]))
    const slow = simulate((count) => 600 * count)
    expect(await slow.fastest(8)).toBe(1)
    expect(slow.counts).toEqual([1, 2])
  })
})
