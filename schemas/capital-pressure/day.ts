/** Days: numbers since 1970-01-01 for computation, YYYY-MM-DD in messages. */
import { Schema } from "effect"

const ms_of_day = 86_400_000

/** The first and last permitted day: every year has four digits. */
export const first_date = "1900-01-01"
export const last_date = "2199-12-31"

const parsed = (date: string) => Date.parse(`${date}T00:00:00Z`) / ms_of_day

const first_day = parsed(first_date)
const last_day = parsed(last_date)

// A run converts the same few thousand days repeatedly, at a microsecond each.
const dates = new Map<number, string>()
const days = new Map<string, number>()

/** Days since 1970-01-01 of a valid date. */
export const dayOf = (date: string): number => days.get(date) ?? parsed(date)

/** The day in UTC of a time in epoch milliseconds. */
export const dayAt = (ms: number): number => Math.floor(ms / ms_of_day)

/** YYYY of a date. */
export const yearOf = (date: string): string => date.slice(0, "YYYY".length)

/** Years of this calendar start on 1 March, so that a leap day is the last day of its year. */
const first_of_march_0000 = -719_468
const firstOfMarch = (year: number) =>
  first_of_march_0000 +
  365 * year +
  Math.floor(year / 4) -
  Math.floor(year / 100) +
  Math.floor(year / 400)

const days_of_year = 365.2425

/** The year of that calendar to which a day belongs. */
const yearFromMarch = (day: number) => {
  let year = Math.floor((day - first_of_march_0000) / days_of_year)
  while (firstOfMarch(year) > day) year--
  while (firstOfMarch(year + 1) <= day) year++
  return year
}

const march = 2
const two_digits = Array.from({ length: 32 }, (_, value) => String(value).padStart(2, "0"))

/** From March, every five months have 153 days, in the same order. */
const monthFromMarch = (day_of_year: number) => Math.floor((5 * day_of_year + 2) / 153)
const daysBefore = (month: number) => Math.floor((153 * month + 2) / 5)

/** Formats a day without a Date object, because callers format twenty years of days. */
const formatDate = (day: number) => {
  const year = yearFromMarch(day)
  const day_of_year = day - firstOfMarch(year)
  const from_march = monthFromMarch(day_of_year)
  const month = (from_march + march) % 12
  const of_month = two_digits[day_of_year - daysBefore(from_march) + 1]
  return `${month < march ? year + 1 : year}-${two_digits[month + 1]}-${of_month}`
}

/** YYYY-MM-DD */
export const dateOf = (day: number): string => {
  const known = dates.get(day)
  if (known !== undefined) return known
  if (!(day >= first_day && day <= last_day)) {
    return new Date(day * ms_of_day).toISOString().slice(0, "YYYY-MM-DD".length)
  }
  const date = formatDate(day)
  dates.set(day, date)
  days.set(date, day)
  return date
}

const isDate = (text: string) => {
  if (days.has(text)) return true
  const day = dayOf(text)
  return Number.isInteger(day) && day >= first_day && day <= last_day && dateOf(day) === text
}

/** A valid date, YYYY-MM-DD, from 1900 to 2199. */
export const CalendarDate = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/u),
  Schema.makeFilter(isDate, { expected: "an existing date, YYYY-MM-DD" }),
)

const sunday = 0
const saturday = 6
const days_of_week = 7
/** 1970-01-01 was a Thursday. */
const weekday_of_day_0 = 4

/** 0 is Sunday, 6 is Saturday. */
export const weekdayOf = (day: number): number =>
  (((day + weekday_of_day_0) % days_of_week) + days_of_week) % days_of_week

/** Monday to Friday; holidays count as business days (market facts, A2.1). */
export const isBusinessDay = (day: number): boolean => {
  const weekday = weekdayOf(day)
  return weekday !== sunday && weekday !== saturday
}

/** The day itself, or the following Monday. */
export const toBusinessDay = (day: number): number => {
  const weekday = weekdayOf(day)
  if (weekday === saturday) return day + 2
  return weekday === sunday ? day + 1 : day
}

/** The same date `years` earlier; 28 February for 29 February if that year has none. */
export const yearsBefore = (day: number, years: number): number => {
  const year = yearFromMarch(day)
  const before = year - years
  return Math.min(firstOfMarch(before) + day - firstOfMarch(year), firstOfMarch(before + 1) - 1)
}

/** The same date one year earlier; 28 February for 29 February. */
export const yearBefore = (day: number): number => yearsBefore(day, 1)
