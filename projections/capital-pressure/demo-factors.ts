/**
 * Factors of the generated history in demo.ts: stress with its crises, the interest rate cycle, and
 * each metric's own noise. All are functions of the seed and the day.
 *
 * Source: decisions of document 3, "generated data that says so"; each metric's usual range is
 * roughly that of its publisher's series since 2003.
 */
import { dayOf, last_date, yearOf } from "#schemas/capital-pressure/day.ts"

export interface Factors {
  readonly seed: number
  /** The first and the last day available. */
  readonly from: number
  readonly to: number
  /** 0 in quiet times; 4.5 at the worst. */
  readonly stress: (day: number) => number
  /** Stress as central banks respond to it: months later, and for longer. */
  readonly relief: (day: number) => number
  /** -1 to 1: rates low and falling to high and rising. */
  readonly cycle: (day: number) => number
  /** The index in points. */
  readonly index: (day: number) => number
  /** The index relative to output; 0 at its beginning. */
  readonly valuation: (day: number) => number
}

/** The first day overall: fixed, so that a day's value never depends on the time of the request. */
const first_day = dayOf("2003-01-01")

/** Peaks of stress: date, height, and days of the rise and of the decay to a third. */
const crises: ReadonlyArray<readonly [peak: string, height: number, rise: number, decay: number]> =
  [
    ["2008-10-20", 4.5, 160, 170],
    ["2011-09-22", 1.3, 50, 90],
    ["2016-02-11", 1.1, 90, 60],
    ["2018-12-24", 1.1, 35, 40],
    ["2020-03-20", 3.0, 12, 60],
    ["2022-09-30", 1.2, 140, 130],
    ["2023-03-13", 0.8, 7, 30],
    ["2025-04-08", 1.3, 9, 40],
    ["2026-08-20", 0.6, 60, 45],
  ]

/** From this year on crises are random, up to the last year. */
const first_unknown_year = 2027
const last_year = Number(yearOf(last_date))

const days_of_year = 365.25

/** The number at an index of a pseudorandom sequence, from 0 to below 1: an integer hash. */
const fractionOf = (seed: number, place: number) => {
  let x = Math.imul(seed ^ Math.imul(place + 1, 0x9e3779b1), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  x = Math.imul(x ^ (x >>> 16), 0x27d4eb2f)
  return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32
}

/** FNV-1a of 32 bits. */
const hashOf = (name: string) => {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return hash
}

/** Normally distributed (Box-Muller). */
const normal = (seed: number, place: number) => {
  const radius = Math.sqrt(-2 * Math.log(1 - fractionOf(seed, 2 * place)))
  return radius * Math.cos(2 * Math.PI * fractionOf(seed, 2 * place + 1))
}

/**
 * Mean-reverting noise with this standard deviation; a deviation halves after `half_life` days.
 * Each name has its own sequence.
 */
export const path = (
  { seed, from, to }: Pick<Factors, "seed" | "from" | "to">,
  name: string,
  deviation: number,
  half_life: number,
) => {
  const own_seed = seed ^ hashOf(name)
  const precomputed = 0.5 ** (1 / half_life)
  const moved = deviation * Math.sqrt(1 - precomputed * precomputed)
  const values = new Float64Array(to - from + 1)
  let value = deviation * normal(own_seed, 0)
  for (const i of values.keys()) {
    value = precomputed * value + moved * normal(own_seed, i + 1)
    values[i] = value
  }
  return (day: number) => values[day - from] ?? 0
}

/** A crisis begins this many rise times before its peak; earlier days skip the computation. */
const rises_max = 12

const wave = (day: number, peak: number, height: number, rise: number, decay: number) => {
  if (day < peak - rises_max * rise) return 0
  return height * Math.exp(day < peak ? (day - peak) / rise : (peak - day) / decay)
}

/** The known crises and the random ones; each has an effect before its own year. */
const wavesOf = (seed: number) => {
  const waves = crises.map(([peak, ...shape]) => [dayOf(peak), ...shape] as const)
  const own_seed = seed ^ hashOf("crises")
  for (let year = first_unknown_year; year <= last_year; year++) {
    const peak = dayOf(`${year}-01-01`) + Math.floor(fractionOf(own_seed, 2 * year) * days_of_year)
    const height = 2 * fractionOf(own_seed, 2 * year + 1) ** 2
    waves.push([peak, height, 40, 70])
  }
  return waves
}

/** A precomputed value for each day. */
const tabulated = (from: number, to: number, dayValue: (day: number) => number) => {
  const values = Float64Array.from({ length: to - from + 1 }, (_, i) => dayValue(from + i))
  return (day: number) => values[day - from] ?? 0
}

/** Fraction of the previous day that relief keeps: it halves in half a year. */
const relief_decay = 0.5 ** (1 / 180)

/** Points of the index at the beginning, and its yearly growth. */
const index_start = 880
const index_growth = 0.085
/** Yearly growth of output. */
const output_growth = 0.052
/** Effect of a unit of stress on the index. */
const index_fear = 0.13

export const factorsOf = (today: number, seed: number): Factors => {
  const from = first_day
  const span = { seed, from, to: Math.max(today, from) }
  const { to } = span
  const waves = wavesOf(seed)
  const nerves = path(span, "stress", 0.3, 45)
  const stress = tabulated(from, to, (day) =>
    waves.reduce((sum, one) => sum + wave(day, ...one), nerves(day)),
  )
  let eased = 0
  const relief = tabulated(from, to, (day) => {
    eased = relief_decay * eased + (1 - relief_decay) * stress(day)
    return eased
  })
  const mood = path(span, "cycle", 0.25, 250)
  const cycle = tabulated(from, to, (day) => {
    const turn = (2 * Math.PI * (day - from)) / days_of_year
    return 0.7 * Math.sin(turn / 8.5) + 0.25 * Math.sin(turn / 3.1) + mood(day)
  })
  const swing = path(span, "index", 0.06, 120)
  const years = (day: number) => (day - from) / days_of_year
  const index = tabulated(from, to, (day) =>
    Math.exp(
      Math.log(index_start) + index_growth * years(day) - index_fear * stress(day) + swing(day),
    ),
  )
  const valuation = tabulated(
    from,
    to,
    (day) => Math.log(index(day) / index_start) - output_growth * years(day),
  )
  return { ...span, stress, relief, cycle, index, valuation }
}

/**
 * A value around a base, with its factors and their weights; `noise` is its own standard deviation.
 */
export interface Level {
  readonly base: number
  readonly stress?: number
  readonly relief?: number
  readonly cycle?: number
  readonly valuation?: number
  readonly noise: number
  /** Days after which its own noise halves. */
  readonly half_life: number
  readonly low: number
  readonly high: number
  readonly decimals: number
}

/** By metric_id, in the stored unit. */
export const levels: Readonly<Record<string, Level>> = {
  hy_spread: {
    base: 3.9,
    stress: 2.4,
    cycle: 0.3,
    noise: 0.25,
    half_life: 25,
    low: 2.4,
    high: 22,
    decimals: 2,
  },
  baa_spread: {
    base: 1.9,
    stress: 0.75,
    noise: 0.12,
    half_life: 40,
    low: 1.3,
    high: 6.2,
    decimals: 2,
  },
  nfci: {
    base: -0.5,
    stress: 0.6,
    cycle: 0.08,
    noise: 0.05,
    half_life: 30,
    low: -1,
    high: 3.2,
    decimals: 3,
  },
  yield_curve: {
    base: 1.1,
    relief: 0.5,
    cycle: -1.7,
    noise: 0.2,
    half_life: 60,
    low: -2,
    high: 3.9,
    decimals: 2,
  },
  ofr_fsi: {
    base: -1.6,
    stress: 3.4,
    noise: 0.4,
    half_life: 20,
    low: -5.5,
    high: 30,
    decimals: 3,
  },
  vix_term: {
    base: 0.88,
    stress: 0.055,
    noise: 0.04,
    half_life: 8,
    low: 0.7,
    high: 1.4,
    decimals: 4,
  },
  rates_vol: {
    base: 72,
    stress: 15,
    cycle: 18,
    noise: 9,
    half_life: 20,
    low: 30,
    high: 200,
    decimals: 2,
  },
  cot_am_spx: {
    base: 24,
    stress: -5,
    cycle: 5,
    noise: 4,
    half_life: 60,
    low: -16,
    high: 52,
    decimals: 2,
  },
  skew: {
    base: 130,
    stress: -3,
    valuation: 12,
    noise: 6,
    half_life: 15,
    low: 106,
    high: 172,
    decimals: 2,
  },
  margin_cushion: {
    base: 42,
    relief: 5,
    cycle: -4,
    valuation: -10,
    noise: 1.5,
    half_life: 120,
    low: 17,
    high: 64,
    decimals: 3,
  },
  equity_gdp: {
    base: 100,
    valuation: 120,
    noise: 1.5,
    half_life: 200,
    low: 55,
    high: 260,
    decimals: 3,
  },
  hh_equity_share: {
    base: 27,
    valuation: 18,
    noise: 0.4,
    half_life: 200,
    low: 15,
    high: 52,
    decimals: 3,
  },
  net_issuance: {
    base: -1.6,
    relief: 0.7,
    cycle: 0.5,
    noise: 0.4,
    half_life: 250,
    low: -5,
    high: 2.5,
    decimals: 3,
  },
  erp_proxy: {
    base: 4.2,
    relief: 0.9,
    cycle: -1.1,
    valuation: -2.5,
    noise: 0.3,
    half_life: 200,
    low: -1.5,
    high: 8.5,
    decimals: 3,
  },
  lending_standards: {
    base: -4,
    stress: 13,
    relief: 13,
    cycle: 9,
    noise: 5,
    half_life: 120,
    low: -28,
    high: 86,
    decimals: 1,
  },
}

/** These metrics store a growing level; the displayed value is its growth over a year. */
export interface Growth extends Omit<Level, "low" | "high"> {
  readonly start: number
  /** Fraction of the level that varies with the season. */
  readonly season?: number
}

/** By metric_id: a yearly rate of growth, and the level of 2003 in the stored unit. */
export const growing: Readonly<Record<string, Growth>> = {
  net_liquidity: {
    start: 720_000,
    base: 0.06,
    relief: 0.07,
    cycle: -0.1,
    noise: 0.05,
    half_life: 120,
    season: 0.01,
    decimals: 0,
  },
  margin_debt: {
    start: 135_000,
    base: 0.11,
    stress: -0.22,
    relief: 0.12,
    cycle: 0.04,
    noise: 0.07,
    half_life: 90,
    decimals: 0,
  },
  bank_credit: {
    start: 5_900,
    base: 0.062,
    relief: -0.02,
    cycle: 0.02,
    noise: 0.012,
    half_life: 180,
    decimals: 2,
  },
  m2_growth: {
    start: 5_800,
    base: 0.05,
    relief: 0.015,
    cycle: -0.025,
    noise: 0.012,
    half_life: 180,
    decimals: 1,
  },
  treasury_supply: {
    start: 3.65e12,
    base: 0.07,
    relief: 0.035,
    cycle: -0.02,
    noise: 0.015,
    half_life: 150,
    season: 0.004,
    decimals: 2,
  },
}
