import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Observation } from "#actors/capital-pressure/observation.ts"
import {
  MetricObserved,
  MetricRevised,
  type ObservationEvent,
} from "#events/capital-pressure/observation.ts"
import { commit_bytes_max } from "#events/log.ts"
import {
  ObserveMetric,
  observationId,
  partsOf,
  type Observation as Told,
} from "#schemas/capital-pressure/observation.ts"
import { bytesOf, coded, decided, leap_year } from "../world/capital-pressure/coded.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const ts = "2026-01-02"
const other = "2026-12-31"
const demo = true as const

const observed = MetricObserved.make({ ts, value: 3.2 })
const revised = MetricRevised.make({ ts, value: 3.4, previous: 3.2 })
const generated = MetricObserved.make({ ts, value: 3.2, demo })
const regenerated = MetricRevised.make({ ts, value: 3.4, previous: 3.2, demo })

const states = {
  absent: [],
  real: [observed],
  "real and revised": [observed, revised],
  demo: [generated],
  "demo and revised": [generated, regenerated],
} satisfies Record<string, ReadonlyArray<ObservationEvent>>

const observe = (is_demo: boolean, ...observations: ReadonlyArray<Told>) =>
  ObserveMetric.make({ observations, demo: is_demo })

const mixed = {
  real: { demo: "DemoMixed", "demo and revised": "DemoMixed" },
  demo: { real: "DemoMixed", "real and revised": "DemoMixed" },
} as const

const back = MetricRevised.make({ ts, value: 3.2, previous: 3.4 })

describe("a metric's year", () => {
  everyState(coded(Observation), states, {
    ObserveMetric: [
      {
        with: "of a value",
        command: observe(false, { ts, value: 3.2 }),
        in: { absent: [observed], "real and revised": [back], ...mixed.real },
        otherwise: [],
      },
      {
        with: "of another value and another day",
        command: observe(false, { ts: other, value: 0 }, { ts, value: 3.4 }),
        in: {
          absent: [
            MetricObserved.make({ ts: other, value: 0 }),
            MetricObserved.make({ ts, value: 3.4 }),
          ],
          real: [MetricObserved.make({ ts: other, value: 0 }), revised],
          ...mixed.real,
        },
        otherwise: [MetricObserved.make({ ts: other, value: 0 })],
      },
      {
        with: "of generated values",
        command: observe(true, { ts, value: 3.4 }),
        in: {
          absent: [MetricObserved.make({ ts, value: 3.4, demo: true })],
          demo: [regenerated],
          "demo and revised": [],
          ...mixed.demo,
        },
        otherwise: [],
      },
      {
        with: "of another year",
        command: observe(false, { ts: "2027-01-02", value: 3.2 }),
        in: { absent: [MetricObserved.make({ ts: "2027-01-02", value: 3.2 })] },
        otherwise: "WrongYear",
      },
      {
        with: "of two years",
        command: observe(false, { ts, value: 3.2 }, { ts: "2025-01-02", value: 3.2 }),
        otherwise: "WrongYear",
      },
      { with: "of nothing", command: observe(true), otherwise: [] },
    ],
  })

  it("takes the last of two values of one day", () =>
    assert.deepEqual(decided(Observation, observe(false, { ts, value: 1 }, { ts, value: 2 })), [
      MetricObserved.make({ ts, value: 2 }),
    ]))

  it("says what to do where generated and real data would meet", () => {
    const refused = Observation.decide(
      Observation.evolve(Observation.initialState, observed),
      observe(true, { ts, value: 3.2 }),
    )
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) {
      assert.include(refused.failure.detail, "contains real data")
      assert.include(refused.failure.detail, "use another data folder (ALMANAC_DATA_DIR)")
    }
  })

  it("is corrupt where a revision is not of what is known, or a day comes twice", () => {
    const known = Observation.evolve(Observation.initialState, observed)
    for (const event of [back, observed, { ...observed, ts: "2027-01-02" }, generated]) {
      assert.throws(() => Observation.evolve(known, event), "cannot happen in this state")
    }
  })

  it("keeps a year of daily values, however many digits, in a snapshot and in a commit", () => {
    const values = leap_year.map((day, i) => ({ ts: day, value: (-1 - i / 7) * 1e-100 }))
    const events = decided(Observation, observe(true, ...values))
    assert.lengthOf(events, 366)
    assert.isBelow(bytesOf(events), commit_bytes_max / 2)
    const { value, context } = assertStorable(Observation, events)
    assert.equal(value, "demo")
    const kept: Record<string, Record<string, number>> = {}
    for (const { ts, value: one } of values) {
      kept[ts.slice(5, 7)] = { ...kept[ts.slice(5, 7)], [ts.slice(8)]: one }
    }
    assert.deepEqual(context, { year: "2024", values: kept })
    const again = Observation.decide(
      Observation.after(Observation.initialState, events),
      observe(true, ...values),
    )
    assert.deepEqual(again, Result.succeed([]))
  })

  it("has the metric and the year in its name", () => {
    assert.equal(observationId("hy_spread", "2026"), "hy_spread-2026")
    assert.deepEqual(partsOf("hy_spread-2026"), { metric_id: "hy_spread", year: "2026" })
  })
})
