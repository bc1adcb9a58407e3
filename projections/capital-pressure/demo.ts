/**
 * A generated history of the dashboard: regimes, two crises like 2008 and 2020, seasons, and values
 * that revert to their usual range. None of it was ever published.
 *
 * It is a pure function of the seed and the day: a day's values stay the same on every later day,
 * so a second run a month later only adds a month. Source: decisions of document 3, "generated data
 * that says so (`ingest --demo`)".
 */
import {
  type Factors,
  factorsOf,
  growing,
  type Level,
  levels,
  path,
} from "#projections/capital-pressure/demo-factors.ts"
import type { PriceSeries, Series } from "#projections/capital-pressure/store.ts"
import {
  dateOf,
  dayOf,
  isBusinessDay,
  weekdayOf,
  yearOf,
  yearsBefore,
} from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { index_ticker } from "#schemas/capital-pressure/price.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { benchmark, type WatchlistTarget, watchlist } from "#schemas/capital-pressure/watchlist.ts"

export interface Demo {
  /** By metric_id, each metric with a feed. */
  readonly observations: ReadonlyMap<string, Series>
  /** By ticker: the watchlist, its benchmark, and the index. */
  readonly prices: ReadonlyMap<string, PriceSeries>
  readonly targets: ReadonlyArray<WatchlistTarget>
}

/** The default seed of `ingest --demo`. */
export const demo_seed = 20_031_001

/** Length of the history, in years. */
export const demo_years = 20

/** All data known on the day `today`, including the years before it. */
export const demoOf = (today: number, seed: number = demo_seed): Demo => {
  const factors = factorsOf(today, seed)
  const from = yearsBefore(today, demo_years)
  return {
    observations: new Map(
      metrics
        .filter(({ stub }) => stub === null)
        .map((metric) => [metric.metric_id, observed(factors, metric, from, today)]),
    ),
    prices: new Map(
      tickers.map((ticker) => [ticker, quoted(closeOf(factors, ticker), from, today)]),
    ),
    targets: targetsOf(factors, today),
  }
}

const tickers = [...watchlist.map(({ ticker }) => ticker), benchmark, index_ticker]

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]

/** Days on which exchanges are closed, as MM-DD; a few suffice to resemble a calendar. */
const holidays = new Set(["01-01", "07-04", "12-25"])

const isTradingDay = (day: number) =>
  isBusinessDay(day) && !holidays.has(dateOf(day).slice("YYYY-".length))

/** Whether a publisher dates a value of this metric on this day. */
const isDated = ({ cadence, cadence_label }: Metric) => {
  if (cadence === "daily") return isTradingDay
  const weekday = weekdays.findIndex((name) => cadence_label.includes(`(${name})`))
  if (cadence === "weekly") return (day: number) => weekdayOf(day) === Math.max(weekday, 1)
  const first = cadence === "monthly" ? /-01$/ : /-(01|04|07|10)-01$/
  return (day: number) => first.test(dateOf(day))
}

const daysOf = (from: number, to: number, isOne: (day: number) => boolean) => {
  const days: Array<number> = []
  for (let day = from; day <= to; day++) if (isOne(day)) days.push(day)
  return Int32Array.from(days)
}

const rounded = (value: number, decimals: number) =>
  Math.round(value * 10 ** decimals) / 10 ** decimals

const observed = (factors: Factors, metric: Metric, from: number, today: number): Series => {
  const days = daysOf(from, today - metric.publication_lag, isDated(metric))
  const { at, decimals } = generatorOf(factors, metric.metric_id)
  return { days, values: Float64Array.from(days, (day) => rounded(at(day), decimals)) }
}

/** A generator of a metric's daily value, and the number of decimals its publisher prints. */
const generatorOf = (factors: Factors, metric_id: string) => {
  const growth = growing[metric_id]
  if (growth !== undefined) {
    const { start, decimals, season = 0, ...rate } = growth
    const level = grown(factors, metric_id, rate, start)
    const at = (day: number) => level(day) * (1 + season * seasonOf(day))
    return { at, decimals }
  }
  const level = levels[metric_id]
  // Each metric with a feed is in one of the tables; the tests check all of them.
  if (level === undefined) throw new Error(`No demo values for ${metric_id}.`)
  return { at: bounded(factors, metric_id, level), decimals: level.decimals }
}

/** The base plus the effect of each factor, softly limited to the historical range. */
const bounded = (factors: Factors, name: string, level: Level) => {
  const { base, stress = 0, relief = 0, cycle = 0, valuation = 0, low, high } = level
  const own = path(factors, name, level.noise, level.half_life)
  return (day: number) => {
    const value =
      base +
      stress * factors.stress(day) +
      relief * factors.relief(day) +
      cycle * factors.cycle(day) +
      valuation * factors.valuation(day) +
      own(day)
    return softly(value, low, high)
  }
}

/** Fraction of the range at either end where values slow down, so that none sticks to a limit. */
const edge = 0.1

const softly = (value: number, low: number, high: number) => {
  const width = (high - low) * edge
  if (value > high - width) return high - width * Math.exp(-(value - high + width) / width)
  if (value < low + width) return low + width * Math.exp((value - low - width) / width)
  return value
}

const days_of_year = 365.25

/** -1 to 1 over the year, highest in spring. */
const seasonOf = (day: number) => Math.sin((2 * Math.PI * day) / days_of_year)

/** A level that grows by each day's yearly rate. */
const grown = (
  factors: Factors,
  name: string,
  rate: Omit<Level, "low" | "high" | "decimals">,
  start: number,
) => {
  const { base, stress = 0, relief = 0, cycle = 0, noise, half_life } = rate
  const own = path(factors, name, noise, half_life)
  const logs = new Float64Array(factors.to - factors.from + 1)
  let log = Math.log(start)
  for (const i of logs.keys()) {
    const day = factors.from + i
    const pressed = stress * factors.stress(day) + relief * factors.relief(day)
    log += (base + pressed + cycle * factors.cycle(day) + own(day)) / days_of_year
    logs[i] = log
  }
  return (day: number) => Math.exp(logs[day - factors.from] ?? log)
}

/** A ticker relative to the index: its start in 2003, its own yearly growth, and its swings. */
const stocks: Readonly<Record<string, readonly [start: number, drift: number, noise: number]>> = {
  UNH: [20, 0.035, 0.11],
  LLY: [46, 0.02, 0.13],
  JNJ: [44, -0.03, 0.06],
  ABBV: [24, 0.005, 0.09],
  MRK: [43, -0.04, 0.08],
  ISRG: [10, 0.06, 0.12],
  TMO: [20, 0.04, 0.09],
  CVS: [12, 0.01, 0.12],
  XLV: [26, -0.005, 0.03],
}

/** How much the health sector follows the index. */
const beta = 0.85

const closeOf = (factors: Factors, ticker: string) => {
  if (ticker === index_ticker) return factors.index
  const [start = 1, drift = 0, noise = 0] = stocks[ticker] ?? []
  const own = path(factors, ticker, noise, stock_half_life)
  const index_start = factors.index(factors.from)
  return (day: number) => {
    const years = (day - factors.from) / days_of_year
    const followed = beta * Math.log(factors.index(day) / index_start)
    return start * Math.exp(drift * years + followed + own(day))
  }
}

/** Days after which a stock's own swing halves. */
const stock_half_life = 120

/** Without dividends or splits both closes are equal. */
const quoted = (close: (day: number) => number, from: number, today: number): PriceSeries => {
  const days = daysOf(from, today - 1, isTradingDay)
  const closes = Float64Array.from(days, (day) => rounded(close(day), 2))
  return { days, close: closes, adjusted: closes }
}

/** Plausible price targets at the beginning of the year. */
const initial_targets: Readonly<Record<string, readonly [of_price: number, fwd_pe: number]>> = {
  UNH: [1.12, 16.8],
  LLY: [1.02, 31.4],
  JNJ: [1.06, 15.2],
  ABBV: [0.97, 14.9],
  MRK: [1.15, 11.6],
  ISRG: [0.9, 52.3],
  TMO: [1.1, 22.1],
  CVS: [1.2, 10.4],
}

/** Days into a year before the previous year's targets are replaced. */
const new_year_days = 10

const targetsOf = (factors: Factors, today: number): Demo["targets"] => {
  const set_on = `${yearOf(dateOf(today - new_year_days))}-01-02`
  return watchlist.map(({ ticker }) => {
    const [of_price = 1, fwd_pe = null] = initial_targets[ticker] ?? []
    const target = Math.round(closeOf(factors, ticker)(dayOf(set_on)) * of_price)
    return { ticker, target, fwd_pe, set_on }
  })
}
