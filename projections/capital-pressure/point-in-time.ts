/**
 * Point in time: what was known of a metric on a day.
 *
 * Source: decisions of document 3, point in time; market facts, A2.1.
 */
import { toBusinessDay } from "#schemas/capital-pressure/day.ts"
import type { Cadence } from "#schemas/capital-pressure/metric.ts"

/** For how many days after its date a value stands for its metric. */
export const carry_days_max = { daily: 10, weekly: 21, monthly: 95, quarterly: 290 } as const

/** The business day from which an observation of this day is known. */
export const availableOn = (day: number, publication_lag: number): number =>
  toBusinessDay(day + publication_lag)

/** `availableOn` of each; ascending where the days are. */
export const availableDays = (days: Int32Array, publication_lag: number): Int32Array =>
  days.map((day) => availableOn(day, publication_lag))

/** The index of the last of these ascending days that is not after this one; -1 where all are. */
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

/** Whether a value of `observed` is too old on `day` to count: its feed may be dead. */
export const isStale = (cadence: Cadence, observed: number, day: number): boolean =>
  day - observed > carry_days_max[cadence]
