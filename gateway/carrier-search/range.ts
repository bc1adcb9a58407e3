/** The range that a request asks for, or why it cannot. Source: decisions, carrier validation. */
import { mc_number_max, type Range, total } from "#schemas/carrier-search/carrier.ts"

/** One parameter as the query has it: absent, once, or several times. */
export type Given = string | ReadonlyArray<string> | undefined

export interface GivenRange {
  readonly start?: Given
  readonly end?: Given
}

const digits = /^\d+$/
/** A whole number that is not positive: its own text is kinder than "not an integer". */
const negative = /^-\d+$/

/** What can be wrong with one parameter, in the order in which both are asked. */
const questions: ReadonlyArray<(given: Given) => string | undefined> = [
  (given) => (given === undefined ? "is required" : undefined),
  (given) => (typeof given === "string" ? undefined : "must be given once"),
  (given) => (digits.test(`${given}`) || negative.test(`${given}`) ? undefined : not_digits),
  (given) => (Number(given) > 0 ? undefined : "must be positive"),
  (given) => (Number(given) <= mc_number_max ? undefined : `must be at most ${mc_number_max}`),
]
const not_digits = "must be an integer, in digits only"

/** Document 3 §7 B has this text. */
const wrong_way = "'end' must be greater than or equal to 'start'"

/** The range, or the text of the 400. `range_max`: numbers that one search may ask for. */
export const rangeOf = ({ start, end }: GivenRange, range_max: number): Range | string => {
  for (const question of questions) {
    const of_start = question(start)
    if (of_start !== undefined) return `'start' ${of_start}`
    const of_end = question(end)
    if (of_end !== undefined) return `'end' ${of_end}`
  }
  const range = { start: Number(start), end: Number(end) }
  if (range.end < range.start) return wrong_way
  const numbers = total(range)
  if (numbers <= range_max) return range
  return `the range has ${numbers} MC numbers, and one search may ask for ${range_max} at most`
}
