/**
 * A store as the feeds would fill it over two decades, generated from a seed: 20 metrics in their
 * cadences, 57,700 observations, prices of ten tickers, and the composite of the last 20 years.
 */

import { compositeHistory } from "#projections/capital-pressure/composite.ts"
import { availableOn } from "#projections/capital-pressure/point-in-time.ts"
import type { FeedRow, PriceSeries, Series, Store } from "#projections/capital-pressure/store.ts"
import {
  dateOf,
  dayOf,
  isBusinessDay,
  weekdayOf,
  yearsBefore,
} from "#schemas/capital-pressure/day.ts"
import type { Cadence, Metric } from "#schemas/capital-pressure/metric.ts"
import { index_ticker } from "#schemas/capital-pressure/price.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { benchmark, watchlist } from "#schemas/capital-pressure/watchlist.ts"

/** A Friday, used as today. */
export const synthetic_last_day = dayOf("2026-11-20")
const synthetic_first_day = dayOf("2002-03-01")
const composite_years = 20
const days_of_year = 365.25

/** Numbers in [0, 1), deterministic in the seed (mulberry32). */
const randomOf = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Normally distributed, mean 0 and standard deviation 1. */
const normalOf = (seed: number) => {
  const random = randomOf(seed)
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]

/** Whether a publisher dates a value on this day. */
const isDated = ({ cadence, cadence_label }: Metric, day: number): boolean => {
  const is_of: Record<Cadence, () => boolean> = {
    daily: () => isTradingDay(day),
    weekly: () => cadence_label.includes(weekdays[weekdayOf(day)] ?? ""),
    monthly: () => dateOf(day).endsWith("-01"),
    quarterly: () => /-(01|04|07|10)-01$/.test(dateOf(day)),
  }
  return is_of[cadence]()
}

const isTradingDay = (day: number) => isBusinessDay(day) && !/-(12-25|01-01)$/.test(dateOf(day))

/** The range of a metric: its mean and deviation, or its initial value and growth. */
const shapes: Readonly<Record<string, readonly [level: number, deviation: number]>> = {
  hy_spread: [4.4, 1.1],
  baa_spread: [2.3, 0.4],
  net_liquidity: [2_000_000, 0.06],
  nfci: [-0.4, 0.25],
  yield_curve: [1.2, 0.9],
  ofr_fsi: [-0.6, 1.8],
  vix_term: [0.9, 0.06],
  rates_vol: [92, 22],
  cot_am_spx: [22, 8],
  skew: [128, 9],
  margin_debt: [170_000, 0.05],
  margin_cushion: [62, 9],
  bank_credit: [5_300, 0.06],
  m2_growth: [5_500, 0.055],
  treasury_supply: [3.4e12, 0.085],
  equity_gdp: [150, 28],
  hh_equity_share: [32, 5],
  net_issuance: [-1.6, 0.8],
  erp_proxy: [4.1, 1.2],
  lending_standards: [6, 14],
}

/** The speed of mean reversion: half of the distance in a year and a half. */
const half_life_years = 1.5
const growth_noise = 0.03

const valuesOf = ({ metric_id, indicator_kind, cadence }: Metric, count: number, seed: number) => {
  const [level, scale] = shapes[metric_id] ?? [0, 1]
  const normal = normalOf(seed)
  const of_year = { daily: 260, weekly: 52, monthly: 12, quarterly: 4 }[cadence]
  const kept = 0.5 ** (1 / (half_life_years * of_year))
  let state = normal()
  return Float64Array.from({ length: count }, (_, index) => {
    state = state * kept + normal() * Math.sqrt(1 - kept * kept)
    if (indicator_kind === "level") return level + scale * state
    return level * Math.exp((scale * index) / of_year + growth_noise * state)
  })
}

/** Only values published by the last day. */
const seriesOf = (metric: Metric, last_day: number, seed: number): Series => {
  const is_there = (day: number) =>
    isDated(metric, day) && availableOn(day, metric.publication_lag) <= last_day
  const days = daysUntil(last_day).filter(is_there)
  return { days, values: valuesOf(metric, days.length, seed) }
}

const daysUntil = (last_day: number) => {
  const length = last_day - synthetic_first_day + 1
  return Int32Array.from({ length }, (_, index) => synthetic_first_day + index)
}

const daily_drift = 0.0003
const daily_deviation = 0.012
const dividend_yield = 0.018
const cents = 100

const pricesOf = (first: number, last_day: number, seed: number): PriceSeries => {
  const normal = normalOf(seed)
  const days = daysUntil(last_day).filter(isTradingDay)
  let price = first
  const close = Float64Array.from(days, () => {
    price *= Math.exp(daily_drift + daily_deviation * normal())
    return Math.round(price * cents) / cents
  })
  const adjusted = close.map((one, index) => {
    const years = (last_day - (days[index] ?? last_day)) / days_of_year
    return one * Math.exp(-dividend_yield * years)
  })
  return { days, close, adjusted }
}

const feedRow = (last_day: number): FeedRow => ({
  last_ingested_at: `${dateOf(last_day)}T22:05:00.000Z`,
  last_error_at: null,
  last_error: null,
  demo: false,
})

const feedsOf = (last_day: number): Store["feeds"] => {
  const live = metrics.filter(({ stub }) => stub === null).map(({ metric_id }) => metric_id)
  const row = feedRow(last_day)
  const failed = { last_error_at: row.last_ingested_at, last_error: "Cboe answered 503." }
  const ids = [...live, "prices", "watchlist"]
  return new Map(ids.map((id) => [id, id === "skew" ? { ...row, ...failed } : row]))
}

const jobsOf = (last_day: number): Store["jobs"] => {
  const at = `${dateOf(last_day)}T22:00:00.000Z`
  const ran = { last_run_at: at, last_success_at: at, last_error_at: null, last_error: null }
  return new Map([["daily_ingest", ran]])
}

/**
 * Every value depends only on the seed; a store with an earlier last day is a prefix of this one.
 */
export const syntheticStore = (seed = 1, last_day = synthetic_last_day): Store => {
  const live = metrics.filter(({ stub }) => stub === null)
  const tickers = [...watchlist.map(({ ticker }) => ticker), benchmark, index_ticker]
  const observations = new Map(
    live.map((metric, index) => [
      metric.metric_id,
      seriesOf(metric, last_day, seed * 1000 + index),
    ]),
  )
  return {
    observations,
    prices: new Map(
      tickers.map((ticker, index) => [
        ticker,
        pricesOf(ticker === index_ticker ? 1100 : 40 + 5 * index, last_day, seed * 2000 + index),
      ]),
    ),
    composite: compositeHistory(observations, yearsBefore(last_day, composite_years) + 1, last_day),
    feeds: feedsOf(last_day),
    jobs: jobsOf(last_day),
    targets: watchlist.map(({ ticker }, index) => ({
      ticker,
      target: index === 0 ? 0 : 100 * index,
      fwd_pe: index === 0 ? null : 10 + index,
      set_on: index === 0 ? null : "2026-10-01",
    })),
  }
}
