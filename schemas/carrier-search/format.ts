/**
 * Carriers as text, one row after the other: the three forms in which a search answers.
 *
 * Source: document 3 §4 B; decisions of document 3, carrier range.
 */

export const formats = ["json", "ndjson", "csv"] as const
export type Format = (typeof formats)[number]

/** What ends each row. A JSON list keeps it between its rows alone: the last one is cut off. */
export const row_end: Readonly<Record<Format, string>> = { json: ",\n", ndjson: "\n", csv: "\r\n" }

/** The first line of a CSV answer. Source: RFC 4180. */
export const csv_header = "mcNumber,name,authorityStatus,operatingType\r\n"

/** RFC 4180: quoted where it has to be. A leading formula sign is quoted by an apostrophe. */
export const cell = (text: string): string => {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const status = '"authorityStatus":"ACTIVE","operatingType":"CARRIER"'

/** One carrier's row, its end included. */
export const rowOf = (mcNumber: number, name: string, format: Format): string =>
  format === "csv"
    ? `${mcNumber},${cell(name)},ACTIVE,CARRIER${row_end.csv}`
    : `{"mcNumber":${mcNumber},"name":${JSON.stringify(name)},${status}}${row_end[format]}`
