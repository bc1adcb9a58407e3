/** The range of a request, or why it is invalid. Source: decisions, carrier validation. */
import { mc_number_max, type Range, total } from "#schemas/carrier-search/carrier.ts"

/** A query parameter: absent, once, or several times. */
export type RawParameter = string | ReadonlyArray<string> | undefined

export interface RawRange {
  readonly start?: RawParameter
  readonly end?: RawParameter
}

const digits = /^\d+$/
/** A negative integer, which has its own error text. */
const negative = /^-\d+$/

/** The checks of a parameter, in order; each one runs for both parameters before the next. */
const checks: ReadonlyArray<(value: RawParameter) => string | undefined> = [
  (value) => (value === undefined ? "is required" : undefined),
  (value) => (typeof value === "string" ? undefined : "must be given once"),
  (given) => (digits.test(`${given}`) || negative.test(`${given}`) ? undefined : not_digits),
  (given) => (Number(given) > 0 ? undefined : "must be positive"),
  (given) => (Number(given) <= mc_number_max ? undefined : `must be at most ${mc_number_max}`),
]
const not_digits = "must be an integer, in digits only"

/** Text from document 3 §7 B. */
const reversed_range = "'end' must be greater than or equal to 'start'"

/** Returns the range, or the text of the 400. `range_max`: maximum number of MC numbers. */
export const rangeOf = ({ start, end }: RawRange, range_max: number): Range | string => {
  for (const check of checks) {
    const of_start = check(start)
    if (of_start !== undefined) return `'start' ${of_start}`
    const of_end = check(end)
    if (of_end !== undefined) return `'end' ${of_end}`
  }
  const range = { start: Number(start), end: Number(end) }
  if (range.end < range.start) return reversed_range
  const numbers = total(range)
  if (numbers <= range_max) return range
  return `the range has ${numbers} MC numbers; the maximum is ${range_max}`
}
