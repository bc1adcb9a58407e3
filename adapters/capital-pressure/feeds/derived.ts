/**
 * Metrics that are made of several series of FRED: which, and how.
 *
 * A value is told for each date of the slowest series. A faster one counts as of that date: its
 * newest value at or before it, if that is not older than ten days (daily) or three weeks
 * (weekly). Series of one cadence are joined on equal dates. Where one has none, nothing is told.
 * Source: market facts, A1.2 with its unit traps.
 */
import { firstAtOrAfter, ordered } from "#adapters/capital-pressure/feeds/series.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"

export interface Derivation {
  /** FRED's ids; the first is the slowest, whose dates the values have. */
  readonly inputs: ReadonlyArray<string>
  readonly combine: (series: ReadonlyArray<Series>) => Series
}

/** How far before the first wanted day the inputs are asked for: what any value looks back. */
export const warm_up_days = 400

const carry_days = { daily: 10, weekly: 21 } as const

/** The newest value at or before `day` that is not older than `carry` days. */
const asOf = ({ days, values }: Series, day: number, carry: number): number | undefined => {
  const place = firstAtOrAfter(days, day + 1) - 1
  return (days[place] ?? Number.NEGATIVE_INFINITY) < day - carry ? undefined : values[place]
}

const onDay = (series: Series, day: number) => asOf(series, day, 0)

/** A value for each day of `slow` that has one. */
const derived = (
  slow: Series | undefined,
  value: (amount: number, day: number, place: number) => number | undefined,
): Series => {
  const by_day = new Map<number, number>()
  for (const [place, day] of slow?.days.entries() ?? []) {
    const found = value(slow?.values[place] ?? Number.NaN, day, place)
    if (found !== undefined && Number.isFinite(found)) by_day.set(day, found)
  }
  return ordered(by_day)
}

/** The Federal Reserve's daily repos began then; before, a day without a value had none. */
const repos_began = dayOf("2013-09-23")

/** USD millions: assets and the Treasury's account are in millions, repos in billions. */
const netLiquidity: Derivation = {
  inputs: ["WALCL", "WDTGAL", "RRPONTSYD"],
  combine: ([assets, treasury, repos]) =>
    derived(assets, (amount, day) => {
      const account = treasury && asOf(treasury, day, carry_days.weekly)
      const lent = repos && asOf(repos, day, carry_days.daily)
      const repo = lent ?? (day < repos_began ? 0 : undefined)
      return account === undefined || repo === undefined
        ? undefined
        : amount - account - repo * 1000
    }),
}

/** A ratio; only of days on which both closed. */
const vixTerm: Derivation = {
  inputs: ["VIXCLS", "VXVCLS"],
  combine: ([month, quarter]) =>
    derived(month, (near, day) => {
      const far = quarter && onDay(quarter, day)
      return far === undefined || far <= 0 ? undefined : near / far
    }),
}

const changes_of_month = 21
const trading_days_of_year = 252
const bp_of_percent = 100

/** Basis points a year: the sample deviation of 21 changes from one trading day to the next. */
const ratesVol: Derivation = {
  inputs: ["DGS10"],
  combine: ([yields]) =>
    derived(yields, (_percent, _day, place) => {
      if (yields === undefined || place < changes_of_month) return undefined
      const window = yields.values.subarray(place - changes_of_month, place + 1)
      const changes = window.subarray(1).map((value, n) => value - (window[n] ?? Number.NaN))
      const mean = changes.reduce((sum, change) => sum + change, 0) / changes_of_month
      const squares = changes.reduce((sum, change) => sum + (change - mean) ** 2, 0)
      const deviation = Math.sqrt(squares / (changes_of_month - 1))
      return deviation * Math.sqrt(trading_days_of_year) * bp_of_percent
    }),
}

/** Percent: shares in USD millions, output in billions. */
const equityGdp: Derivation = {
  inputs: ["NCBEILQ027S", "GDP"],
  combine: ([equity, output]) =>
    derived(equity, (amount, day) => {
      const year = output && onDay(output, day)
      return year === undefined || year <= 0 ? undefined : (amount / 1000 / year) * 100
    }),
}

/** From the first day of a quarter to that of the third after it: 273 to 276 days. */
const three_quarters_days = 276
const quarters_of_year = 4

/** Percent. Issuance is told at an annual rate, so that a year's flow is the mean of four. */
const netIssuance: Derivation = {
  inputs: ["NCBEILQ027S", "NCBCEBQ027S"],
  combine: ([equity, issued]) =>
    derived(equity, (amount, day) => {
      if (issued === undefined || amount <= 0) return undefined
      const end = firstAtOrAfter(issued.days, day)
      const start = end - quarters_of_year + 1
      const first = issued.days[start]
      if (issued.days[end] !== day || first === undefined) return undefined
      if (day - first > three_quarters_days) return undefined
      const flows = issued.values.subarray(start, end + 1)
      const mean = flows.reduce((sum, flow) => sum + flow, 0) / quarters_of_year
      return (mean / amount) * 100
    }),
}

/** Points: profits in USD billions at an annual rate against shares in millions, less a yield. */
const erpProxy: Derivation = {
  inputs: ["NCBEILQ027S", "CP", "DFII10"],
  combine: ([equity, profits, real]) =>
    derived(equity, (amount, day) => {
      const profit = profits && onDay(profits, day)
      const percent = real && asOf(real, day, carry_days.daily)
      if (profit === undefined || percent === undefined || amount <= 0) return undefined
      return ((profit * 1000) / amount) * 100 - percent
    }),
}

/** By metric_id. */
export const derivations: ReadonlyMap<string, Derivation> = new Map([
  ["net_liquidity", netLiquidity],
  ["vix_term", vixTerm],
  ["rates_vol", ratesVol],
  ["equity_gdp", equityGdp],
  ["net_issuance", netIssuance],
  ["erp_proxy", erpProxy],
])
