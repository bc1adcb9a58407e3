/** Parses CSV and selects columns by their header. */
import { Result } from "effect"
import { quoted } from "#adapters/capital-pressure/feeds/plan.ts"
import type { Row } from "#adapters/capital-pressure/feeds/series.ts"

/** Three centuries of daily rows. */
const rows_max = 110_000
/** The number of columns that an error lists. */
const listed_columns_max = 6

/** The trimmed cells of each row, in the order of `columns`. */
export const cellsOf = (
  text: string,
  columns: ReadonlyArray<RegExp>,
): Result.Result<ReadonlyArray<ReadonlyArray<string>>, string> => {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/)
  const header = split(lines[0] ?? "")
  const indices = columns.map((column) => header.findIndex((name) => column.test(name)))
  if (indices.includes(-1)) {
    const listed = header.slice(0, listed_columns_max).map(quoted).join(", ")
    return Result.fail(`has changed its columns: ${listed}`)
  }
  if (lines.length > rows_max) return Result.fail(`returned more than ${rows_max} rows`)
  const rows: Array<ReadonlyArray<string>> = []
  for (const [n, line] of lines.entries()) {
    if (n === 0 || line.trim() === "") continue
    const cells = split(line)
    if (cells.length !== header.length) {
      return Result.fail(`has ${cells.length} of ${header.length} columns in line ${n + 1}`)
    }
    rows.push(indices.map((index) => cells[index] ?? ""))
  }
  return Result.succeed(rows)
}

/** The rows of a table with a date column and a value column. */
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
