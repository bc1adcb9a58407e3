import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { interleave } from "../../bench/harness/series.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-series-"))
afterAll(() => rmSync(folder, { recursive: true }))

const effort = { in_flight: 1, seconds: 0, runs_max: 5 }

/** Measures two contestants and records the order and maximum run count of each round. */
const measure = async (warm_up = effort) => {
  const calls: Array<string> = []
  const seats = ["a", "b"].map((name) => ({
    name,
    round: async ({ runs_max }: typeof effort) => {
      calls.push(`${name}${runs_max}`)
      return { runs: 1, runs_per_s: calls.length, p50_ms: 1, p99_ms: 1 }
    },
  }))
  const { series } = await interleave(seats, effort, 2, folder, warm_up)
  return { calls, rates: series.map(({ rounds }) => rounds.map((round) => round.runs_per_s)) }
}

describe("rounds of several contestants", () => {
  it("take turns, after one discarded warm-up each", async () => {
    const { calls, rates } = await measure({ ...effort, runs_max: 9 })
    expect(calls).toEqual(["a9", "b9", "a5", "b5", "a5", "b5"])
    expect(rates).toEqual([
      [3, 5],
      [4, 6],
    ])
  })

  it("begin at once where the warm-up has no runs", async () => {
    const { calls, rates } = await measure({ ...effort, runs_max: 0 })
    expect(calls).toEqual(["a5", "b5", "a5", "b5"])
    expect(rates).toEqual([
      [1, 3],
      [2, 4],
    ])
  })
})
