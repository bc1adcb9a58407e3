/**
 * Metrics that are derived from several FRED series.
 *
 * The result has the dates of the least frequent series. A more frequent one contributes its latest
 * value at or before that date, if it is at most ten days (daily) or three weeks (weekly) old.
 * Series with the same frequency are joined on equal dates. Dates without all inputs are omitted.
 * Source: market facts, A1.2 with its unit traps.
 */
import { firstAtOrAfter, ordered } from "#adapters/capital-pressure/feeds/series.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"

export interface Derivation {
  /** FRED's ids. The first is the least frequent series, whose dates the result has. */
  readonly inputs: ReadonlyArray<string>
  readonly combine: (series: ReadonlyArray<Series>) => Series
}

/** How many days before `since` the inputs must start; covers the longest window. */
export const warm_up_days = 400

const carry_days = { daily: 10, weekly: 21 } as const

/** The latest value at or before `day` that is at most `carry` days old. */
const asOf = ({ days, values }: Series, day: number, carry: number): number | undefined => {
  const index = firstAtOrAfter(days, day + 1) - 1
  return (days[index] ?? Number.NEGATIVE_INFINITY) < day - carry ? undefined : values[index]
}

const onDay = (series: Series, day: number) => asOf(series, day, 0)

/** Computes a value for each day of `slow`; undefined omits the day. */
const derive = (
  slow: Series | undefined,
  value: (amount: number, day: number, index: number) => number | undefined,
): Series => {
  const by_day = new Map<number, number>()
  for (const [index, day] of slow?.days.entries() ?? []) {
    const found = value(slow?.values[index] ?? Number.NaN, day, index)
    if (found !== undefined && Number.isFinite(found)) by_day.set(day, found)
  }
  return ordered(by_day)
}

/** The start of the Federal Reserve's daily repos; earlier, no value means zero. */
const repos_began = dayOf("2013-09-23")

/** USD millions. Assets and the Treasury's account are in millions, repos in billions. */
const netLiquidity: Derivation = {
  inputs: ["WALCL", "WDTGAL", "RRPONTSYD"],
  combine: ([assets, treasury, repos]) =>
    derive(assets, (amount, day) => {
      const account = treasury && asOf(treasury, day, carry_days.weekly)
      const lent = repos && asOf(repos, day, carry_days.daily)
      const repo = lent ?? (day < repos_began ? 0 : undefined)
      return account === undefined || repo === undefined
        ? undefined
        : amount - account - repo * 1000
    }),
}

/** A ratio, for days with both closes. */
const vixTerm: Derivation = {
  inputs: ["VIXCLS", "VXVCLS"],
  combine: ([month, quarter]) =>
    derive(month, (near, day) => {
      const far = quarter && onDay(quarter, day)
      return far === undefined || far <= 0 ? undefined : near / far
    }),
}

const changes_of_month = 21
const trading_days_of_year = 252
const bp_of_percent = 100

/** Basis points per year: the sample deviation of 21 daily changes. */
const ratesVol: Derivation = {
  inputs: ["DGS10"],
  combine: ([yields]) =>
    derive(yields, (_percent, _day, index) => {
      if (yields === undefined || index < changes_of_month) return undefined
      const window = yields.values.subarray(index - changes_of_month, index + 1)
      const changes = window.subarray(1).map((value, n) => value - (window[n] ?? Number.NaN))
      const mean = changes.reduce((sum, change) => sum + change, 0) / changes_of_month
      const squares = changes.reduce((sum, change) => sum + (change - mean) ** 2, 0)
      const deviation = Math.sqrt(squares / (changes_of_month - 1))
      return deviation * Math.sqrt(trading_days_of_year) * bp_of_percent
    }),
}

/** Percent. Equities are in USD millions, output in billions. */
const equityGdp: Derivation = {
  inputs: ["NCBEILQ027S", "GDP"],
  combine: ([equity, output]) =>
    derive(equity, (amount, day) => {
      const year = output && onDay(output, day)
      return year === undefined || year <= 0 ? undefined : (amount / 1000 / year) * 100
    }),
}

/** Three quarters have 273 to 276 days. */
const three_quarters_days = 276
const quarters_of_year = 4

/** Percent. Issuance is an annual rate, so a year's flow is the mean of four quarters. */
const netIssuance: Derivation = {
  inputs: ["NCBEILQ027S", "NCBCEBQ027S"],
  combine: ([equity, issued]) =>
    derive(equity, (amount, day) => {
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

/**
 * Percentage points: annualized profits in USD billions over equities in millions, less a yield.
 */
const erpProxy: Derivation = {
  inputs: ["NCBEILQ027S", "CP", "DFII10"],
  combine: ([equity, profits, real]) =>
    derive(equity, (amount, day) => {
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
