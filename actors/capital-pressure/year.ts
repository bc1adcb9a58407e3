/** A year's values by their day, as the aggregates of a year keep them; and what they refuse. */
import { yearOf } from "#schemas/capital-pressure/day.ts"
import { DemoMixed, WrongYear } from "#schemas/capital-pressure/rejection.ts"

/** `MM` and `DD` of a date, YYYY-MM-DD. */
const monthOf = (ts: string) => ts.slice("YYYY-".length, "YYYY-MM".length)
const dayOfMonth = (ts: string) => ts.slice("YYYY-MM-".length)

/**
 * Values by month and day, `MM` and `DD`: a year takes hundreds of days in one command, and one
 * event of a day copies a month and not the year. `year` is null before the first.
 */
export interface Year<Value> {
  readonly year: string | null
  readonly values: Readonly<Record<string, Readonly<Record<string, Value>>>>
}

/** Before anything is known of it. */
export const no_year = { year: null, values: {} } as const

/** What is known of a day; undefined of another year's. */
export const known = <Value>({ year, values }: Year<Value>, ts: string): Value | undefined =>
  year === yearOf(ts) ? values[monthOf(ts)]?.[dayOfMonth(ts)] : undefined

/** The year with more days, or other values of some; all of them of one year, and at least one. */
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

/** The year without these days. */
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

/** The year with one more day, or another value of one. */
export const withDay = <Value>(year: Year<Value>, ts: string, value: Value): Year<Value> =>
  withDays(year, [[ts, value]])

/** A stream keeps one year: that of its first day. */
export const isOfYear = ({ year }: Year<unknown>, ts: string) =>
  year === null || year === yearOf(ts)

/** Of several values of one day the last one counts. */
export const lastOfDay = <Value extends { readonly ts: string }>(values: ReadonlyArray<Value>) => [
  ...new Map(values.map((value) => [value.ts, value])).values(),
]

/** Why the days of a command cannot be; undefined when they all are of one year, and this one. */
export const wrongYear = (
  { year }: Year<unknown>,
  days: ReadonlyArray<{ readonly ts: string }>,
): WrongYear | undefined => {
  const [first] = days
  const own = year ?? (first && yearOf(first.ts))
  const other = days.find(({ ts }) => yearOf(ts) !== own)
  if (other === undefined) return undefined
  return new WrongYear({ detail: `${other.ts} is not of the year ${own}, which is kept here.` })
}

/** Why data of one kind cannot join those of the other. */
export const demoMixed = (demo: boolean) => {
  const [known, told] = demo ? ["real", "generated"] : ["generated", "real"]
  return new DemoMixed({
    detail:
      `This data folder holds ${known} data, which ${told} data never join: ` +
      "use another data folder (ALMANAC_DATA_DIR).",
  })
}
