/**
 * Formats carriers as rows in the three response formats.
 *
 * Source: document 3 §4 B; decisions of document 3, carrier range.
 */

export const formats = ["json", "ndjson", "csv"] as const
export type Format = (typeof formats)[number]

/** The end of each row. JSON lists need it only between rows, so the last one is cut off. */
export const row_end: Readonly<Record<Format, string>> = { json: ",\n", ndjson: "\n", csv: "\r\n" }

/** The first line of a CSV response. Source: RFC 4180. */
export const csv_header = "mcNumber,name,authorityStatus,operatingType\r\n"

/** Quotes a cell if necessary (RFC 4180). An apostrophe neutralizes a leading formula sign. */
export const cell = (text: string): string => {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const status = '"authorityStatus":"ACTIVE","operatingType":"CARRIER"'

/** A carrier's row, including its end. */
export const rowOf = (mcNumber: number, name: string, format: Format): string =>
  format === "csv"
    ? `${mcNumber},${cell(name)},ACTIVE,CARRIER${row_end.csv}`
    : `{"mcNumber":${mcNumber},"name":${JSON.stringify(name)},${status}}${row_end[format]}`
