/**
 * Validates and sorts published rows.
 *
 * Rows may be in any order. A duplicate date with the same value is ignored; with different values
 * it is an error, because either value could be wrong.
 */
import { Result } from "effect"
import { quoted } from "#adapters/capital-pressure/feeds/plan.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dateOf, dayOf, first_date, last_date } from "#schemas/capital-pressure/day.ts"

/** A published row; the value may be missing. */
export interface Row {
  /** YYYY-MM-DD */
  readonly date: string
  readonly value: string
}

/** How publishers write a missing value, mostly on holidays. */
const missing_values = new Set(["", ".", "null", "na"])
const number_pattern = /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?$/

export const isMissing = (text: string) => missing_values.has(text.trim().toLowerCase())

/** Parses a finite decimal number. Rejects "NaN", "Infinity", "1,000" and "0x1". */
export const numberOf = (text: string): number | undefined => {
  const clean = text.trim()
  const value = number_pattern.test(clean) ? Number(clean) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}

/** Parses YYYY-MM-DD; undefined for an invalid date or one outside 1900 to 2199. */
export const parseDay = (date: string): number | undefined => {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date) || date < first_date || date > last_date) return undefined
  const day = dayOf(date)
  return Number.isInteger(day) && dateOf(day) === date ? day : undefined
}

/** The rows with a value, by day. Any invalid row is an error. */
export const seriesOf = (
  rows: ReadonlyArray<Row>,
  today: number,
): Result.Result<Series, string> => {
  const by_day = new Map<number, number>()
  for (const { date, value } of rows) {
    const day = parseDay(date)
    if (day === undefined) return Result.fail(`has the date "${quoted(date)}", which is not a date`)
    if (isMissing(value)) continue
    const parsed = numberOf(value)
    if (parsed === undefined) {
      return Result.fail(`has "${quoted(value)}" for ${date}, which is not a number`)
    }
    if (day > today) return Result.fail(`has the date ${date}, which is in the future`)
    const previous = by_day.get(day)
    if (previous !== undefined && previous !== parsed) {
      return Result.fail(`has two values for ${date}`)
    }
    by_day.set(day, parsed)
  }
  return Result.succeed(ordered(by_day))
}

/** A series of values by day. */
export const ordered = (by_day: ReadonlyMap<number, number>): Series => {
  const days = Int32Array.from(by_day.keys()).sort()
  return { days, values: Float64Array.from(days, (day) => by_day.get(day) ?? Number.NaN) }
}

/** The values from the day `since` on. */
export const seriesSince = ({ days, values }: Series, since: number | undefined): Series => {
  if (since === undefined) return { days, values }
  const start = firstAtOrAfter(days, since)
  return { days: days.slice(start), values: values.slice(start) }
}

/** The index of the first day that is `day` or later; the length if there is none. */
export const firstAtOrAfter = (days: Int32Array, day: number) => {
  let low = 0
  let high = days.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((days[middle] ?? 0) < day) low = middle + 1
    else high = middle
  }
  return low
}
