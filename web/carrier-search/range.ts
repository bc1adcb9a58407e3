/** The range to search: parses what people type, and the address of the page. */

export interface Range {
  readonly start: number
  readonly end: number
}

/** The largest MC number. Source: decisions of document 3, carrier validation. */
export const mc_number_max = 99_999_999

export type Field = "start" | "end"

/** A validation error: the field, and what to enter instead. */
export interface FieldError {
  readonly field: Field
  readonly text: string
}

const number_format = new Intl.NumberFormat("en-US")
const names: Readonly<Record<Field, string>> = { start: "first", end: "last" }

export const total = ({ start, end }: Range): number => end - start + 1

/** Normalizes pasted text: "MC-123,456" becomes 123456. Leaves other text unchanged. */
const digitsOf = (text: string) => {
  const bare = text.trim().replace(/^MC[-\s#]*/i, "")
  return /^\d{1,3}([, ]\d{3})+$/.test(bare) ? bare.replaceAll(/[, ]/g, "") : bare
}

const errorIn = (field: Field, digits: string): FieldError | undefined => {
  const name = names[field]
  if (digits === "") return { field, text: `Enter the ${name} MC number.` }
  if (!/^-?\d+$/.test(digits)) {
    return {
      field,
      text: `The ${name} MC number must consist of digits, such as 123456 or MC-123456.`,
    }
  }
  if (Number(digits) < 1) return { field, text: "MC numbers start at 1." }
  if (Number(digits) > mc_number_max) {
    return { field, text: `MC numbers end at ${number_format.format(mc_number_max)}.` }
  }
  return undefined
}

/** Validates in the server's order; returns the range or the first error. */
export const readRange = (start: string, end: string): Range | FieldError => {
  const digits = { start: digitsOf(start), end: digitsOf(end) }
  const field_error = errorIn("start", digits.start) ?? errorIn("end", digits.end)
  if (field_error) return field_error
  const range = { start: Number(digits.start), end: Number(digits.end) }
  if (range.end >= range.start) return range
  return { field: "end", text: `The last number must not be less than the first, ${range.start}.` }
}

export const isRange = (read: Range | FieldError): read is Range => "start" in read

/** "#start=1&end=500" */
export const hashOf = ({ start, end }: Range): string => `#start=${start}&end=${end}`

/** The fields in the URL's fragment; undefined if it has neither. */
export const fieldsInHash = (hash: string): Readonly<Record<Field, string>> | undefined => {
  const parameters = new URLSearchParams(hash.slice(1))
  if (!parameters.has("start") && !parameters.has("end")) return undefined
  return { start: parameters.get("start") ?? "", end: parameters.get("end") ?? "" }
}

/** "MC 1 to 500", "MC 7" */
export const rangeText = ({ start, end }: Range): string =>
  start === end ? `MC ${start}` : `MC ${start} to ${end}`
