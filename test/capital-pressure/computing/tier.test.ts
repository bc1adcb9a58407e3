import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { tierHistoryOf } from "#projections/capital-pressure/tier.ts"
import { TierHistory } from "#schemas/capital-pressure/dashboard.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { storeOf } from "../../world/capital-pressure/store.ts"
import { syntheticStore } from "../../world/capital-pressure/synthetic-store.ts"

const none = Number.NaN
const composite = {
  days: Int32Array.of(dayOf("2026-11-18"), dayOf("2026-11-19"), dayOf("2026-11-20")),
  z: Float64Array.of(1, 2, 3),
  tiers: [
    Float64Array.of(0.123_456, -1, 2),
    Float64Array.of(none, 0.5, none),
    Float64Array.of(none, none, none),
    Float64Array.of(4, 5, 6),
  ],
} as const

describe("a tier's history", () => {
  it("has its average of each day, and the last of them", () => {
    expect(tierHistoryOf(storeOf({ composite }), 1)).toEqual({
      tier: 1,
      name: "Liquidity and Credit",
      tag: "PRICE OF MONEY",
      points: [
        { ts: "2026-11-18", z: 0.1235 },
        { ts: "2026-11-19", z: -1 },
        { ts: "2026-11-20", z: 2 },
      ],
      latest_z: 2,
    })
    expect(tierHistoryOf(storeOf({ composite }), 4)).toMatchObject({ tier: 4, latest_z: 6 })
  })

  it("leaves out the days without data", () => {
    const { points, latest_z } = tierHistoryOf(storeOf({ composite }), 2)
    expect(points).toEqual([{ ts: "2026-11-19", z: 0.5 }])
    expect(latest_z).toBe(0.5)
  })

  it("is empty before the first backfill", () => {
    for (const tier of [1, 2, 3, 4] as const) {
      expect(tierHistoryOf(storeOf(), tier)).toMatchObject({ tier, points: [], latest_z: null })
    }
    expect(tierHistoryOf(storeOf({ composite }), 3)).toMatchObject({ points: [], latest_z: null })
  })

  it("is as the API describes it", () => {
    const found = tierHistoryOf(syntheticStore(), 3)
    expect(found.points.length).toBe(5219)
    expect(Schema.decodeUnknownSync(TierHistory)(found)).toEqual(found)
  })
})
