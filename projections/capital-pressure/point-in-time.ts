/**
 * Point in time: the data of a metric known on a day.
 *
 * Source: decisions of document 3, point in time; market facts, A2.1.
 */
import { toBusinessDay } from "#schemas/capital-pressure/day.ts"
import type { Cadence } from "#schemas/capital-pressure/metric.ts"

/** Number of days for which a value counts after its date. */
export const carry_days_max = { daily: 10, weekly: 21, monthly: 95, quarterly: 290 } as const

/** The business day from which an observation of this day is known. */
export const availableOn = (day: number, publication_lag: number): number =>
  toBusinessDay(day + publication_lag)

/** `availableOn` of each; ascending where the days are. */
export const availableDays = (days: Int32Array, publication_lag: number): Int32Array =>
  days.map((day) => availableOn(day, publication_lag))

/** Index of the last of these ascending days up to this one; -1 if all are later. */
export const lastIndexUntil = (days: Int32Array, day: number): number => {
  let low = 0
  let high = days.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((days[middle] ?? Number.NaN) <= day) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Whether a value of `observed` is too old to count on `day`: its feed may have stopped. */
export const isStale = (cadence: Cadence, observed: number, day: number): boolean =>
  day - observed > carry_days_max[cadence]
