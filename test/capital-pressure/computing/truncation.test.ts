import { describe, expect, it } from "vitest"
import { compositeHistory } from "#projections/capital-pressure/composite.ts"
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import { lastIndexUntil } from "#projections/capital-pressure/point-in-time.ts"
import type { Series, Store } from "#projections/capital-pressure/store.ts"
import { dayOf, isBusinessDay } from "#schemas/capital-pressure/day.ts"
import { syntheticStore } from "../../world/capital-pressure/synthetic-store.ts"

type Observations = Store["observations"]

const { observations } = syntheticStore(3)
const first = dayOf("2025-01-01")
const last = dayOf("2025-12-31")
const full = compositeHistory(observations, first, last)

const mapped = (each: (series: Series, metric_id: string) => Series): Observations =>
  new Map([...observations].map(([id, series]) => [id, each(series, id)]))

/** The observations without values dated after this day. */
const cut = (day: number) =>
  mapped(({ days, values }) => {
    const count = lastIndexUntil(days, day) + 1
    return { days: days.subarray(0, count), values: values.subarray(0, count) }
  })

/** The composite of one day, compared bit for bit. */
const pointOf = ({ days, z, tiers }: typeof full, day: number) => {
  const index = days.indexOf(day)
  return { index: index >= 0, z: z[index], tiers: tiers.map((tier) => tier[index]) }
}

describe("the composite of a day", () => {
  it("is the same from a store that was cut at that day, on every business day of a year", () => {
    const days = Array.from({ length: last - first + 1 }, (_, index) => first + index)
    const business_days = days.filter(isBusinessDay)
    expect(business_days.length).toBe(261)
    for (const day of business_days) {
      const point = pointOf(compositeHistory(cut(day), day, day), day)
      expect(point).toEqual(pointOf(full, day))
      expect(point.index).toBe(true)
    }
  })

  it("is unaffected by later observations", () => {
    const day = dayOf("2025-06-30")
    const later = mapped(({ days, values }) => ({
      days,
      values: values.map((value, index) => ((days[index] ?? 0) > day ? -50 * value : value)),
    }))
    const changed = compositeHistory(later, first, last)
    const count = lastIndexUntil(full.days, day) + 1
    expect(changed.z.subarray(0, count)).toEqual(full.z.subarray(0, count))
    expect(changed.z).not.toEqual(full.z)
  })

  it("changes with what is observed on the days before it", () => {
    const day = dayOf("2025-06-30")
    const earlier = mapped(({ days, values }) => ({
      days,
      values: values.map((value, index) => ((days[index] ?? 0) === day - 3 ? value + 1 : value)),
    }))
    expect(compositeHistory(earlier, day, day).z).not.toEqual(
      compositeHistory(observations, day, day).z,
    )
  })

  it("is what the dashboard shows live on that day", () => {
    for (const date of ["2025-03-31", "2025-07-04", "2025-11-28"]) {
      const day = dayOf(date)
      const store = { ...syntheticStore(3, day), composite: compositeHistory(cut(day), first, day) }
      const { composite, composite_history, tiers } = dashboardOf(store, day)
      const point = composite_history.at(-1)
      expect(point?.ts).toBe(date)
      expect(composite?.z).toBe(point?.z)
      const averages = tiers.map(({ tier, avg_z }) => [String(tier), avg_z])
      expect(Object.fromEntries(averages)).toEqual(point?.tier_zs)
    }
  })
})
