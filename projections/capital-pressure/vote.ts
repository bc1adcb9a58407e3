/**
 * Votes: whether a reading is bull, neutral or bear for the market, and why.
 *
 * Source: document 3 §2 A VoteOut; market facts, A1.3.
 */
import type { LevelRule, Metric, VoteDirection } from "#schemas/capital-pressure/metric.ts"
import { signed } from "./formatting.ts"
import { pressureOf } from "./score.ts"

/** Minimum pressure at which a z-score votes. */
const pressure_min = 0.5
const reason_z_decimals = 2

export interface Vote {
  readonly direction: VoteDirection
  readonly reason: string
}

const holds = ({ when, level }: LevelRule, value: number): boolean => {
  switch (when) {
    case "above":
      return value > level
    case "at_or_above":
      return value >= level
    case "below":
      return value < level
  }
}

const directionOf = (pressure: number): VoteDirection => {
  if (pressure >= pressure_min) return "bear"
  return pressure <= -pressure_min ? "bull" : "neutral"
}

/**
 * The vote of an indicator and its unadjusted z-score (NaN: none, therefore neutral). The first
 * matching level rule decides alone, and the reason names it.
 */
export const voteOf = (metric: Metric, indicator: number, z: number): Vote => {
  if (Number.isNaN(z)) {
    return { direction: "neutral", reason: "History too short for a z-score" }
  }
  const pressure = pressureOf(metric, z)
  const rule = metric.rules.find((one) => holds(one, indicator))
  const direction = rule?.vote ?? directionOf(pressure)
  const score = `(z ${signed(pressure, reason_z_decimals)} over ${metric.zscore_years}y)`
  const by_rule = rule === undefined ? "" : `; level rule ${rule.text}`
  return { direction, reason: `${metric.reasons[direction]} ${score}${by_rule}` }
}
