/** The values of a year by day, as kept in aggregates, and the rejections of invalid days. */
import { yearOf } from "#schemas/capital-pressure/day.ts"
import { DemoMixed, WrongYear } from "#schemas/capital-pressure/rejection.ts"

/** `MM` and `DD` of a date (YYYY-MM-DD). */
const monthOf = (ts: string) => ts.slice("YYYY-".length, "YYYY-MM".length)
const dayOfMonth = (ts: string) => ts.slice("YYYY-MM-".length)

/**
 * Values by month and day, `MM` and `DD`: a command may have hundreds of days, and this way an
 * event for one day copies a month and not the year. `year` is null before the first value.
 */
export interface Year<Value> {
  readonly year: string | null
  readonly values: Readonly<Record<string, Readonly<Record<string, Value>>>>
}

/** A year without values. */
export const empty_year = { year: null, values: {} } as const

/** The value of a day; undefined if there is none, or if the day is in another year. */
export const valueOn = <Value>({ year, values }: Year<Value>, ts: string): Value | undefined =>
  year === yearOf(ts) ? values[monthOf(ts)]?.[dayOfMonth(ts)] : undefined

/** Adds or replaces the values of days, which must all be in the same year. */
export const withDays = <Value>(
  { year, values }: Year<Value>,
  days: ReadonlyArray<readonly [ts: string, value: Value]>,
): Year<Value> => {
  const changed: Record<string, Record<string, Value>> = {}
  for (const [ts, value] of days) {
    const month = monthOf(ts)
    changed[month] ??= { ...values[month] }
    changed[month][dayOfMonth(ts)] = value
  }
  const [first] = days
  return { year: first === undefined ? year : yearOf(first[0]), values: { ...values, ...changed } }
}

/** Removes the values of these days. */
export const withoutDays = <Value>(
  { year, values }: Year<Value>,
  days: ReadonlyArray<string>,
): Year<Value> => {
  const gone = new Set(days)
  const months = Object.entries(values).map(([month, of_month]) => {
    const kept = Object.entries(of_month).filter(([day]) => !gone.has(`${year}-${month}-${day}`))
    return [month, Object.fromEntries(kept)] as const
  })
  return { year, values: Object.fromEntries(months) }
}

/** Adds or replaces the value of one day. */
export const withDay = <Value>(year: Year<Value>, ts: string, value: Value): Year<Value> =>
  withDays(year, [[ts, value]])

/** A stream has a single year: that of its first day. */
export const isOfYear = ({ year }: Year<unknown>, ts: string) =>
  year === null || year === yearOf(ts)

/** Keeps the last value of each day. */
export const lastOfDay = <Value extends { readonly ts: string }>(values: ReadonlyArray<Value>) => [
  ...new Map(values.map((value) => [value.ts, value])).values(),
]

/** The rejection of days that are not all in this stream's year; undefined if they are. */
export const wrongYear = (
  { year }: Year<unknown>,
  days: ReadonlyArray<{ readonly ts: string }>,
): WrongYear | undefined => {
  const [first] = days
  const own = year ?? (first && yearOf(first.ts))
  const other = days.find(({ ts }) => yearOf(ts) !== own)
  if (other === undefined) return undefined
  return new WrongYear({ detail: `${other.ts} is not in the year ${own} of this aggregate.` })
}

/** The rejection of generated data in a real series, or of real data in a generated one. */
export const demoMixed = (demo: boolean) => {
  const [existing, incoming] = demo ? ["real", "generated"] : ["generated", "real"]
  return new DemoMixed({
    detail:
      `This data folder contains ${existing} data, which cannot be mixed with ${incoming} data: ` +
      "use another data folder (ALMANAC_DATA_DIR).",
  })
}
