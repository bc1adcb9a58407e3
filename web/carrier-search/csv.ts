/** Exports the results as CSV, in the same format as the server. Source: RFC 4180. */
import type { Found } from "./search.ts"

const header = "mcNumber,name,authorityStatus,operatingType\r\n"
/** Rows per piece of text. */
const chunk_rows = 5_000

/** Quotes a cell if necessary; a leading apostrophe stops spreadsheets from evaluating formulas. */
const cell = (text: string) => {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The file's text in pieces. */
export const csvOf = ({ numbers, names }: Found): string[] => {
  const pieces = [header]
  for (let from = 0; from < numbers.length; from += chunk_rows) {
    const rows = numbers
      .slice(from, from + chunk_rows)
      .map((number, index) => `${number},${cell(names[from + index] ?? "")},ACTIVE,CARRIER\r\n`)
    pieces.push(rows.join(""))
  }
  return pieces
}

/** Time for the browser to start the download before the object URL is revoked. */
const revoke_after_ms = 60_000

/** Downloads the rows as a file, without a request to the server. */
export const download = (found: Found, name: string): void => {
  const url = URL.createObjectURL(new Blob(csvOf(found), { type: "text/csv;charset=utf-8" }))
  const link = document.createElement("a")
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), revoke_after_ms)
}
