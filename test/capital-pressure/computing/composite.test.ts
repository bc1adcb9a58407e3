import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { compositeHistory, compositeOf } from "#projections/capital-pressure/composite.ts"
import { scoreOf, scoresOf } from "#projections/capital-pressure/score.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dateOf, dayOf, isBusinessDay } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { naiveComposite } from "../../world/capital-pressure/naive.ts"
import { every, metricOf } from "../../world/capital-pressure/store.ts"

/** Values that vary and end above their mean. */
const rising = (length: number) => Array.from({ length }, (_, index) => index % 10)

const from = "2020-01-03"
/** Each series ends on the same Friday, or close to it. */
const series: Readonly<Record<string, Series>> = {
  hy_spread: every(1, from, rising(1400)),
  nfci: every(7, from, rising(200)),
  yield_curve: every(1, from, rising(1400)),
  ofr_fsi: every(1, from, rising(1400)),
  vix_term: every(1, from, rising(1399)),
  lending_standards: every(91, "2019-01-01", rising(20)),
}
const known = (...ids: ReadonlyArray<string>) =>
  new Map(Object.entries(series).filter(([id]) => ids.includes(id)))

const today = dayOf("2023-11-03")

const on = (observations: ReadonlyMap<string, Series>, day = today) => {
  const { z, tiers } = compositeOf(scoresOf(observations), Int32Array.of(day))
  return { z: z[0] ?? Number.NaN, tiers: tiers.map((tier) => tier[0] ?? Number.NaN) }
}

const zOf = (metric_id: string) => {
  const { z, available } = scoreOf(metricOf(metric_id), series[metric_id] ?? every(1, from, []))
  return z[available.findLastIndex((day) => day <= today)] ?? Number.NaN
}

describe("the composite", () => {
  it("of one metric is its pressure", () => {
    expect(on(known("hy_spread")).z).toBe(zOf("hy_spread"))
    expect(zOf("hy_spread")).not.toBe(0)
  })

  it("turns the sign of a metric whose low value signals stress", () => {
    expect(on(known("yield_curve")).z).toBe(-zOf("yield_curve"))
  })

  it("is the mean of the tiers, each the mean of its metrics", () => {
    const tier_1 = (zOf("hy_spread") + zOf("nfci") - zOf("yield_curve")) / 3
    const found = on(known("hy_spread", "nfci", "yield_curve", "vix_term"))
    expect(found.tiers[0]).toBeCloseTo(tier_1, 12)
    expect(found.tiers[1]).toBe(zOf("vix_term"))
    expect(found.z).toBeCloseTo((tier_1 + zOf("vix_term")) / 2, 12)
    expect(found.tiers.slice(2)).toEqual([Number.NaN, Number.NaN])
  })

  it("leaves gauges out", () => {
    expect(on(known("hy_spread", "ofr_fsi"))).toEqual(on(known("hy_spread")))
    expect(on(known("ofr_fsi")).z).toBeNaN()
  })

  it("excludes stubs, even if values of them are stored", () => {
    const observations = new Map([["put_call", every(1, from, rising(1400))]])
    expect(on(observations).z).toBeNaN()
  })

  it("is none without a metric, and while windows have not filled", () => {
    expect(on(new Map()).z).toBeNaN()
    expect(on(known("nfci"), dayOf("2022-06-01")).z).toBeNaN()
    expect(on(known("nfci"), dayOf("2023-06-01")).z).not.toBeNaN()
  })

  it("counts an observation from its publication on", () => {
    // 13 October 2023 is a Friday: nfci is published five days later, on a Wednesday.
    const all = series.nfci ?? every(7, from, [])
    const upto = (date: string) => {
      const count = all.days.filter((day) => day <= dayOf(date)).length
      const { days, values } = all
      return new Map([
        ["nfci", { days: days.subarray(0, count), values: values.subarray(0, count) }],
      ])
    }
    const full = new Map([["nfci", all]])
    expect(on(full, dayOf("2023-10-17"))).toEqual(on(upto("2023-10-06"), dayOf("2023-10-17")))
    expect(on(full, dayOf("2023-10-18"))).toEqual(on(upto("2023-10-13"), dayOf("2023-10-18")))
    expect(on(full, dayOf("2023-10-18"))).not.toEqual(on(full, dayOf("2023-10-17")))
  })

  it.each([
    ["hy_spread", 10],
    ["nfci", 21],
    ["lending_standards", 290],
  ])("of %s alone ends %i days after its last value", (metric_id, days) => {
    const observations = known(metric_id)
    const last = observations.get(metric_id)?.days.at(-1) ?? 0
    expect(on(observations, last + days).z).not.toBeNaN()
    expect(on(observations, last + days + 1).z).toBeNaN()
  })
})

describe("the composite's history", () => {
  it("has each business day that has one, both ends included", () => {
    const { days, z, tiers } = compositeHistory(known("nfci"), dayOf("2023-01-01"), today)
    const dates = Array.from(days, dateOf)
    expect(dates[0]).toBe("2023-01-04")
    expect(dates.at(-1)).toBe("2023-11-03")
    expect(days.every(isBusinessDay)).toBe(true)
    expect(z.some(Number.isNaN)).toBe(false)
    expect(z.length).toBe(days.length)
    expect(tiers.map((tier) => tier.length)).toEqual(tiers.map(() => days.length))
    expect(tiers[0]).toEqual(z)
    expect(tiers[3].every(Number.isNaN)).toBe(true)
  })

  it("is empty where the days end before they begin, and without data", () => {
    expect(compositeHistory(known("nfci"), today, today - 1).days).toEqual(new Int32Array())
    expect(compositeHistory(new Map(), today - 400, today).z).toEqual(new Float64Array())
  })

  it("reports its progress up to the end", () => {
    const progress: Array<readonly [number, number]> = []
    compositeHistory(known("nfci", "hy_spread", "ofr_fsi"), today - 9, today, (done, total) =>
      progress.push([done, total]),
    )
    expect(progress).toEqual([
      [1, 2],
      [2, 2],
    ])
  })

  it("is what the rules say, of any observations", () => {
    const gap_max = { daily: 4, weekly: 14, monthly: 50, quarterly: 140 }
    const live = metrics.filter(({ stub }) => stub === null)
    const ids = fc.uniqueArray(fc.constantFrom(...live.map(({ metric_id }) => metric_id)), {
      minLength: 1,
      maxLength: 6,
    })
    const end = dayOf("2010-03-01")
    let there = 0
    fc.assert(
      fc.property(ids, fc.infiniteStream(fc.nat({ max: 10_000 })), (chosen, stream) => {
        const next = () => stream.next().value ?? 0
        const observations = new Map(
          chosen.map((metric_id) => {
            const days: Array<number> = []
            const gap = gap_max[metricOf(metric_id).cadence]
            for (let day = end - 1700 + (next() % 400); day < end - (next() % 30); ) {
              days.push(day)
              day += 1 + (next() % gap)
            }
            const values = Float64Array.from(days, () => 100 + (next() % 50))
            return [metric_id, { days: Int32Array.from(days), values }] as const
          }),
        )
        const found = compositeHistory(observations, end - 60, end + 30)
        for (let day = end - 60 + (next() % 7); day <= end + 30; day += 7) {
          if (!isBusinessDay(day)) continue
          const expected = naiveComposite(observations, day)
          const index = found.days.indexOf(day)
          expect(index === -1).toBe(expected.z === null)
          if (expected.z === null) continue
          there++
          expect(found.z[index]).toBeCloseTo(expected.z, 9)
          for (const [tier, average] of expected.tiers.entries()) {
            const ours = found.tiers[tier]?.[index] ?? Number.NaN
            if (average === null) expect(ours).toBeNaN()
            else expect(ours).toBeCloseTo(average, 9)
          }
        }
      }),
      { numRuns: 25 },
    )
    expect(there).toBeGreaterThan(50)
  })
})
