/**
 * Labels as headers `X-Label-<name>` of the raw forms. Source: DECISIONS, document 1, framing.
 *
 * Header names have no case, so that a label's name given by header is lower case. What a header
 * cannot carry is percent-encoded as UTF-8, in names and values alike.
 */
import type { BlobLabels } from "#schemas/blob-storage/blob.ts"

const prefix = "x-label-"

/** Many clients read at most 16 KiB of headers; half of it is left to the others. */
const label_header_bytes_max = 8 * 1024

/** A text that is not percent-encoded UTF-8 means itself. */
const decoded = (text: string) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

interface AnyHeaders {
  readonly [name: string]: string | undefined
}

/** Whether any of these headers is a label's. */
export const hasLabels = (headers: AnyHeaders) => {
  for (const name in headers) if (name.startsWith(prefix)) return true
  return false
}

/** The labels of these headers, however many and however long. */
export const decodedLabels = (headers: AnyHeaders) => {
  const labels = Object.entries(headers)
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, value = ""]) => [decoded(name.slice(prefix.length)), decoded(value)])
  return Object.fromEntries(labels)
}

const percent = (text: string) =>
  Array.from(utf8.encode(text), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("")
const utf8 = new TextEncoder()

/** What a header's name may hold, and what a value may, but for the percent sign itself. */
const not_in_name = /[^a-z0-9!#$&'*+.^_`|~-]/gu
const not_in_value = /[^\x21-\x24\x26-\x7e ]|^ | $/gu

/** A lone half of a surrogate pair has no UTF-8 of its own: it is sent as U+FFFD. */
const nameOf = (name: string, is_cased: boolean) =>
  prefix + (is_cased ? name : name.toLowerCase()).replace(not_in_name, percent)

/**
 * These labels as headers. A name keeps its case, percent-encoded, only where lower case would
 * make two labels one. Labels too large for headers are left out, which `X-Labels-Omitted` says.
 */
export const labelHeaders = (labels: BlobLabels): Readonly<Record<string, string>> => {
  const entries = Object.entries(labels)
  const lower = entries.map(([name]) => nameOf(name, false))
  const is_cased = new Set(lower).size < lower.length
  const headers = entries.map(([name, value]): [string, string] => [
    nameOf(name, is_cased),
    value.replace(not_in_value, percent),
  ])
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return bytes > label_header_bytes_max
    ? { "x-labels-omitted": String(entries.length) }
    : Object.fromEntries(headers)
}
