/** Negotiates the format of a response. Source: RFC 9110 §12.5.1. */
import { type Format, formats } from "#schemas/carrier-search/format.ts"

/** The media type of each format. */
export const media_types: Readonly<Record<Format, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
}

interface MediaRange {
  readonly type: string
  /** From 0 to 1; 0 excludes the type. */
  readonly weight: number
}

/** RFC 9110 §12.4.2; an invalid weight is ignored. */
const weight = /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/

const mediaRange = (text: string): MediaRange => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2)
  return { type, weight: q === undefined || !weight.test(q) ? 1 : Number(q) }
}

/**
 * The media ranges that match a type, from the least to the most specific. The last one in the
 * header applies.
 */
const rangesOf = (type: string) => ["*/*", `${type.split("/", 1)[0]}/*`, type]

const preferenceOf = (ranges: ReadonlyArray<MediaRange>, format: Format) => {
  const names = rangesOf(media_types[format])
  const types = new Set(ranges.map(({ type }) => type))
  const specificity = names.findLastIndex((name) => types.has(name))
  const found = ranges.find(({ type }) => type === names[specificity])
  return { format, weight: found?.weight ?? 0, specificity }
}

/**
 * The format with the highest weight; among equals the one with the most specific range, then JSON,
 * NDJSON, CSV. Undefined if the client accepts none of them.
 */
export const formatOf = (accept: string | undefined): Format | undefined => {
  if (accept === undefined || accept.trim() === "") return "json"
  const ranges = accept.split(",").map(mediaRange)
  const [best] = formats
    .map((format) => preferenceOf(ranges, format))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || b.specificity - a.specificity)
  return best?.format
}
