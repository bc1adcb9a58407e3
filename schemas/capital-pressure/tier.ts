/** Names of the tiers. Source: decisions of document 3, metric registry (A1.1). */
import type { Tier } from "#schemas/capital-pressure/metric.ts"

export interface TierName {
  readonly tier: Tier
  readonly name: string
  readonly tag: string
  readonly cadence: string
}

export const tiers: ReadonlyArray<TierName> = [
  { tier: 1, name: "Liquidity and Credit", tag: "PRICE OF MONEY", cadence: "daily / weekly" },
  { tier: 2, name: "Positioning and Sentiment", tag: "CROWD", cadence: "daily / weekly" },
  {
    tier: 3,
    name: "Flows, Leverage and Issuance",
    tag: "FLOW",
    cadence: "daily / weekly / monthly",
  },
  { tier: 4, name: "Valuation and Structure", tag: "STRUCTURE", cadence: "quarterly" },
]
