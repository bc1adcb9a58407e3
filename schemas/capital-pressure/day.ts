/** Days: counted from 1970-01-01 where they are computed with, YYYY-MM-DD where they are told. */
import { Schema } from "effect"

const ms_of_day = 86_400_000

/** The first and last day that a value may have, so that every date has four digits for its year. */
export const first_date = "1900-01-01"
export const last_date = "2199-12-31"

/** Days since 1970-01-01 of a date that there is. */
export const dayOf = (date: string): number => Date.parse(`${date}T00:00:00Z`) / ms_of_day

/** YYYY-MM-DD */
export const dateOf = (day: number): string =>
  new Date(day * ms_of_day).toISOString().slice(0, "YYYY-MM-DD".length)

const isDate = (text: string) => {
  const day = dayOf(text)
  return Number.isInteger(day) && dateOf(day) === text && text >= first_date && text <= last_date
}

/** A date that there is: YYYY-MM-DD, from 1900 to 2199. */
export const CalendarDate = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/),
  Schema.makeFilter(isDate, { expected: "a date that there is, YYYY-MM-DD" }),
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

/** The day itself, or the Monday after it. */
export const toBusinessDay = (day: number): number => {
  const weekday = weekdayOf(day)
  if (weekday === saturday) return day + 2
  return weekday === sunday ? day + 1 : day
}

/** The same date a year before; of 29 February the 28th. */
export const yearBefore = (day: number): number => {
  const date = dateOf(day)
  const year = String(Number(date.slice(0, 4)) - 1)
  const before = `${year}${date.slice(4)}`
  return dayOf(before.endsWith("-02-29") ? `${year}-02-28` : before)
}

/** The same date so many years before; of 29 February the 28th where that year has none. */
export const yearsBefore = (day: number, years: number): number => {
  const date = dateOf(day)
  const before = `${Number(date.slice(0, 4)) - years}${date.slice(4)}`
  const found = dayOf(before)
  return Number.isNaN(found) || dateOf(found) !== before
    ? dayOf(`${before.slice(0, 4)}-02-28`)
    : found
}
