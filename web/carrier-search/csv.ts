/** What was found as a CSV file: the rows that the server's own CSV has. Source: RFC 4180. */
import type { Found } from "./search.ts"

const header = "mcNumber,name,authorityStatus,operatingType\r\n"
/** Rows that are one text before they are bytes. */
const chunk_rows = 5_000

/** Quoted where it has to be; an apostrophe leads what a spreadsheet would take for a formula. */
const cell = (text: string) => {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The file's text, in pieces. */
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

/** Long enough for any browser to begin with the file. */
const kept_ms = 60_000

/** Hands the file to the person. Nothing is asked of the server. */
export const download = (found: Found, name: string): void => {
  const url = URL.createObjectURL(new Blob(csvOf(found), { type: "text/csv;charset=utf-8" }))
  const link = document.createElement("a")
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), kept_ms)
}
