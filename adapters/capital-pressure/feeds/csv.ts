/** Tables of comma-separated values, whose columns are found by what stands in their first line. */
import { Result } from "effect"
import { quoted } from "#adapters/capital-pressure/feeds/plan.ts"
import type { Row } from "#adapters/capital-pressure/feeds/series.ts"

/** A row for each day of three centuries. */
const rows_max = 110_000
/** Columns that a message names. */
const columns_told_max = 6

/** The cells of each row below the header, in the order of `columns`, without space around them. */
export const cellsOf = (
  text: string,
  columns: ReadonlyArray<RegExp>,
): Result.Result<ReadonlyArray<ReadonlyArray<string>>, string> => {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/)
  const header = split(lines[0] ?? "")
  const places = columns.map((column) => header.findIndex((name) => column.test(name)))
  if (places.includes(-1)) {
    const told = header.slice(0, columns_told_max).map(quoted).join(", ")
    return Result.fail(`has other columns than it had: ${told}`)
  }
  if (lines.length > rows_max) return Result.fail(`answered more than ${rows_max} rows`)
  const rows: Array<ReadonlyArray<string>> = []
  for (const [n, line] of lines.entries()) {
    if (n === 0 || line.trim() === "") continue
    const cells = split(line)
    if (cells.length !== header.length) {
      return Result.fail(`has ${cells.length} of ${header.length} columns in line ${n + 1}`)
    }
    rows.push(places.map((place) => cells[place] ?? ""))
  }
  return Result.succeed(rows)
}

/** The rows of a table with a column of dates and one of values. */
export const rowsOf = (
  text: string,
  date: RegExp,
  value: RegExp,
): Result.Result<ReadonlyArray<Row>, string> =>
  Result.map(cellsOf(text, [date, value]), (rows) =>
    rows.map(([date = "", value = ""]) => ({ date, value })),
  )

const split = (line: string): ReadonlyArray<string> => {
  if (!line.includes('"')) return line.split(",").map((cell) => cell.trim())
  const cells = line.matchAll(/(?:^|,)\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))/g)
  return [...cells].map(([, inner, bare = ""]) => (inner?.replaceAll('""', '"') ?? bare).trim())
}
