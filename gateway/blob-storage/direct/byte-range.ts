/**
 * Byte ranges and content negotiation: the headers Range, If-Range and Accept.
 *
 * Source: RFC 9110 §13 and §14; DECISIONS, document 1, framing of streams, raw forms.
 */

/** A range of bytes: from `start` to before `end`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

const one_range = /^bytes\s*=\s*(\d*)\s*-\s*(\d*)$/i

/**
 * The range of a Range header for a blob of `size` bytes: "none" if it contains no byte of the
 * blob; "all" if the header is malformed, has another unit, or has several ranges, which a server
 * need not support.
 */
export const rangeOf = (header: string | undefined, size: number): ByteRange | "all" | "none" => {
  const [, first = "", last = ""] = one_range.exec(header?.trim() ?? "") ?? []
  if (first === "" && last === "") return "all"
  if (first === "") {
    const length = Math.min(Number(last), size)
    // An empty blob has no last bytes, and no Content-Range can describe them.
    if (size === 0) return "all"
    return length === 0 ? "none" : { start: size - length, end: size }
  }
  const start = Number(first)
  if (last !== "" && Number(last) < start) return "all"
  if (start >= size) return "none"
  return { start, end: last === "" ? size : Math.min(Number(last) + 1, size) }
}

/** The requested range; all bytes if If-Range has another tag, or a date. */
export const requestedRange = (
  headers: { readonly [name: string]: string | undefined },
  tag: string,
  size: number,
) => {
  const condition = headers["if-range"]?.trim()
  const is_range = condition === undefined || condition === tag
  return rangeOf(is_range ? headers.range : undefined, size)
}

/** One media range of an Accept header with its weight, 0 to 1. */
const mediaRange = (text: string) => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2)
  return { type, weight: q === undefined ? 1 : Number(q) }
}

/**
 * Whether an Accept header prefers plain bytes to JSON: it names application/octet-stream before or
 * above any form of JSON. A wildcard does not count, because JSON is the documented form.
 */
export const prefersBytes = (accept: string | undefined) => {
  const ranges = (accept ?? "").split(",").map(mediaRange)
  const bytes = ranges.findIndex(({ type }) => type === "application/octet-stream")
  const bytes_weight = ranges[bytes]?.weight ?? 0
  const is_rival = ({ type, weight }: (typeof ranges)[number], index: number) =>
    type.endsWith("json") &&
    type !== "" &&
    (weight > bytes_weight || (weight === bytes_weight && index < bytes))
  return bytes_weight > 0 && !ranges.some(is_rival)
}
