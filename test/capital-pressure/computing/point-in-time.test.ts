import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  availableDays,
  availableOn,
  carry_days_max,
  isStale,
  lastIndexUntil,
} from "#projections/capital-pressure/point-in-time.ts"
import { dateOf, dayOf, isBusinessDay } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"

describe("an observation", () => {
  it.each([
    ["2026-11-19", 1, "2026-11-20"],
    ["2026-11-20", 1, "2026-11-23"],
    ["2026-11-20", 2, "2026-11-23"],
    ["2026-11-20", 3, "2026-11-23"],
    ["2026-11-17", 4, "2026-11-23"],
    ["2026-01-01", 165, "2026-06-15"],
    ["2026-11-20", 0, "2026-11-20"],
  ])("of %s with a lag of %i days is known from %s on", (date, lag, known) => {
    expect(dateOf(availableOn(dayOf(date), lag))).toBe(known)
  })

  it("is known on a business day, never before its lag, and in the order of its date", () => {
    const days = Int32Array.from({ length: 800 }, (_, index) => dayOf("2024-01-01") + index)
    for (const lag of new Set(metrics.map(({ publication_lag }) => publication_lag))) {
      const available = availableDays(days, lag)
      for (const [index, day] of available.entries()) {
        expect(isBusinessDay(day)).toBe(true)
        expect(day - (days[index] ?? 0)).toBeGreaterThanOrEqual(lag)
        expect(day - (days[index] ?? 0)).toBeLessThanOrEqual(lag + 2)
        expect(day).toBeGreaterThanOrEqual(available[index - 1] ?? 0)
      }
    }
  })

  it.each([
    ["daily", 10],
    ["weekly", 21],
    ["monthly", 95],
    ["quarterly", 290],
  ] as const)("of a %s metric counts for %i days", (cadence, days) => {
    expect(carry_days_max[cadence]).toBe(days)
    expect(isStale(cadence, 20_000, 20_000 + days)).toBe(false)
    expect(isStale(cadence, 20_000, 20_000 + days + 1)).toBe(true)
  })
})

describe("the last of some days until a day", () => {
  it("is what a scan finds", () => {
    const ascending = fc
      .array(fc.integer({ min: -50, max: 50 }))
      .map((days) => Int32Array.from(days).sort())
    fc.assert(
      fc.property(ascending, fc.integer({ min: -60, max: 60 }), (days, day) => {
        expect(lastIndexUntil(days, day)).toBe(days.findLastIndex((one) => one <= day))
      }),
      { numRuns: 1000 },
    )
  })
})
