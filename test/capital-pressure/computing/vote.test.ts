import { describe, expect, it } from "vitest"
import { voteOf } from "#projections/capital-pressure/vote.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { metricOf } from "../../world/capital-pressure/store.ts"

const vote = (metric_id: string, indicator: number, z: number) =>
  voteOf(metricOf(metric_id), indicator, z)

const direction = (metric_id: string, indicator: number, z: number) =>
  vote(metric_id, indicator, z).direction

describe("a vote", () => {
  it.each([
    [-0.5, "bull"],
    [-0.4999, "neutral"],
    [0, "neutral"],
    [0.4999, "neutral"],
    [0.5, "bear"],
  ] as const)("of a higher_bearish metric at z %d is %s", (z, of) => {
    expect(direction("equity_gdp", 150, z)).toBe(of)
  })

  it.each([
    [-0.5, "bear"],
    [-0.4999, "neutral"],
    [0.4999, "neutral"],
    [0.5, "bull"],
  ] as const)("of a higher_bullish metric at z %d is %s", (z, of) => {
    expect(direction("cot_am_spx", 20, z)).toBe(of)
  })

  // Source: market facts, A1.3.
  it.each([
    ["hy_spread", 5.99, "bull", 6, "bear", ">= 6.0 bear"],
    ["baa_spread", 2.99, "bull", 3, "bear", ">= 3.0 bear"],
    ["nfci", 0, "bull", 0.01, "bear", "> 0 bear"],
    ["yield_curve", 0, "bear", -0.01, "bear", "< 0 bear"],
    ["ofr_fsi", 0, "bull", 0.01, "bear", "> 0 bear"],
    ["vix_term", 1, "bull", 1.01, "bear", "> 1.0 bear"],
    ["bank_credit", 0, "bear", -0.01, "bear", "< 0 bear"],
    ["m2_growth", 0, "bear", -0.01, "bear", "< 0 bear"],
    ["erp_proxy", 0, "bear", -0.01, "bear", "< 0 bear"],
    ["lending_standards", 20, "bull", 20.01, "bear", "> 20 bear"],
    ["lending_standards", 0, "bull", -0.01, "bull", "< 0 bull"],
  ] as const)("of %s at %d is of its z, %s; at %d it is %s by rule %s", (...row) => {
    const [metric_id, outside, by_z, inside, by_rule, text] = row
    expect(vote(metric_id, outside, -1).direction).toBe(by_z)
    expect(vote(metric_id, outside, -1).reason).not.toContain("level rule")
    for (const z of [-3, 0, 3]) {
      const ruled = vote(metric_id, inside, z)
      expect(ruled.direction).toBe(by_rule)
      expect(ruled.reason).toMatch(new RegExp(`\\); level rule ${text}$`))
      expect(ruled.reason).toContain(metricOf(metric_id).reasons[by_rule])
    }
  })

  it("is neutral without a z-score, even where a level rule would decide", () => {
    const result = { direction: "neutral", reason: "History too short for a z-score" }
    expect(vote("equity_gdp", 150, Number.NaN)).toEqual(result)
    expect(vote("hy_spread", 9, Number.NaN)).toEqual(result)
  })

  it("states the pressure, signed, and the years", () => {
    expect(vote("hy_spread", 3, 0.126).reason).toBe(
      "Spread sits inside its usual one-year band (z +0.13 over 1y)",
    )
    expect(vote("cot_am_spx", 3, 1.5).reason).toBe(
      "Institutions are adding futures exposure (z -1.50 over 3y)",
    )
    expect(vote("cot_am_spx", 3, 0).reason).toContain("(z +0.00 over 3y)")
    expect(vote("hy_spread", 6, 0.2).reason).toBe(
      "Spread is wide for the year; lenders ask to be paid for risk (z +0.20 over 1y); " +
        "level rule >= 6.0 bear",
    )
  })

  it("has a sentence of its own for each metric and direction, without double spaces", () => {
    for (const metric of metrics) {
      const pressing = metric.direction_kind === "higher_bearish" ? 1 : -1
      const reasons = [-2, 0, 2].map((pressure) => {
        const vote = voteOf({ ...metric, rules: [] }, 1, pressing * pressure)
        const sentence = metric.reasons[vote.direction]
        expect(vote.reason.startsWith(`${sentence} (z `)).toBe(true)
        expect(vote.reason).not.toMatch(/ {2}|\{|^ /)
        return vote.direction
      })
      expect(reasons).toEqual(["bull", "neutral", "bear"])
    }
  })
})
