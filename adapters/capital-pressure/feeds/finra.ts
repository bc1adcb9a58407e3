/**
 * FINRA's margin statistics: one workbook, replaced in place each month.
 *
 * Balances are as of the last day of a month, which is its date. February is always the 28th, so
 * that the same date a year earlier is the same month. Source: market facts, A1.4 FINRA.
 */
import { Effect, Result } from "effect"
import { zipSync } from "fflate"
import readWorkbook from "read-excel-file/universal"
import {
  type FeedPart,
  fromResult,
  quoted,
  unreadable,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { type Row, seriesOf } from "#adapters/capital-pressure/feeds/series.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dateOf, dayAt } from "#schemas/capital-pressure/day.ts"
import { isZipFailure, openZip } from "#zip"

/** The file is about 40 kB, and hundreds of kB unpacked. */
const bytes_max = 16 * 1024 * 1024
/** Entries of the archive; a workbook with 50 sheets has a hundred or so. */
const entries_max = 1000
/** Maximum number of rows above the headings. */
const heading_rows_max = 30
/** Three centuries of months. */
const rows_max = 3600
/** Earlier credit balances are not comparable. */
const cushion_first = "2010-02"

export type MarginValue = "margin_debt" | "margin_cushion"

/**
 * Monthly. margin_debt: debit balances in USD millions. margin_cushion: free credit in cash and
 * margin accounts in percent of debit, from February 2010 on.
 */
export const finraPart = (value: MarginValue): FeedPart => ({
  request: {
    publisher: "finra",
    path: "/sites/default/files/2021-03/margin-statistics.xlsx",
    bytes_max,
  },
  read: Effect.fnUntraced(function* (bytes, today) {
    const sheets = yield* Effect.tryPromise({
      try: async () => readWorkbook(await boundedWorkbook(bytes)),
      catch: (error) =>
        isZipFailure(error) && error.reason === "too large"
          ? `decompresses to more than ${bytes_max / 1024 / 1024} MB`
          : "returned a file that is not a workbook",
    }).pipe(Effect.catch(unreadable))
    for (const { data } of sheets) {
      const table = findTable(data)
      if (table) return yield* fromResult(margins(table, value, today))
    }
    const names = sheets.map(({ sheet }) => quoted(sheet)).join(", ")
    return yield* unreadable(`has no sheet with the columns of margin balances (${names})`)
  }),
})

/**
 * Repacks the workbook's XML entries without compression and within a size limit, because the
 * library that reads them trusts the sizes in the archive.
 */
const boundedWorkbook = async (bytes: Uint8Array): Promise<Blob> => {
  const zip = await openZip(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), entries_max)
  const parts: Array<readonly [string, Uint8Array]> = []
  let remaining_bytes = bytes_max
  for (const name of zip.names.filter((one) => /\.(xml|rels)$/i.test(one))) {
    const part = await zip.read(name, remaining_bytes)
    if (part === undefined) continue
    remaining_bytes -= part.length
    parts.push([name, part])
  }
  return new Blob([zipSync(Object.fromEntries(parts), { level: 0 })])
}

type Cells = ReadonlyArray<unknown>

interface Table {
  readonly rows: ReadonlyArray<Cells>
  readonly month: number
  readonly debit: number
  readonly cash: number
  readonly margin: number
}

/** Finds the table by its headings, because columns and sheets have moved before. */
const findTable = (data: ReadonlyArray<Cells>): Table | undefined => {
  for (const [n, row] of data.slice(0, heading_rows_max).entries()) {
    const at = (heading: RegExp) =>
      row.findIndex((cell) => typeof cell === "string" && heading.test(cell))
    const columns = {
      month: at(/^\s*(year\W*month|month\W*year)/i),
      debit: at(/^\s*debit balances/i),
      cash: at(/^\s*free credit.*\bcash\b/i),
      margin: at(/^\s*free credit.*\bmargin\b/i),
    }
    if (!Object.values(columns).includes(-1)) return { rows: data.slice(n + 1), ...columns }
  }
  return undefined
}

const margins = (
  { rows, ...columns }: Table,
  value: MarginValue,
  today: number,
): Result.Result<Series, string> => {
  if (rows.length > rows_max) return Result.fail(`returned more than ${rows_max} rows`)
  const found: Array<Row> = []
  for (const cells of rows) {
    const month = monthOf(cells[columns.month])
    // Skip notes below the table and an empty row above the first month.
    if (month === undefined) continue
    const [debit, cash, margin] = [columns.debit, columns.cash, columns.margin].map((column) =>
      amountOf(cells[column]),
    )
    if (debit === undefined || debit <= 0) return Result.fail(`has no debit balance for ${month}`)
    if (value === "margin_debt") found.push({ date: endOf(month), value: String(debit) })
    else if (month >= cushion_first) {
      if (cash === undefined || margin === undefined) {
        return Result.fail(`has no free credit balance for ${month}`)
      }
      found.push({ date: endOf(month), value: String(((cash + margin) / debit) * 100) })
    }
  }
  return seriesOf(found, today)
}

/** The month YYYY-MM of a text or date cell. */
const monthOf = (cell: unknown): string | undefined => {
  if (cell instanceof Date) return cell.toISOString().slice(0, "YYYY-MM".length)
  const text = typeof cell === "string" ? cell.trim() : ""
  return /^\d{4}-(0[1-9]|1[0-2])$/.test(text) ? text : undefined
}

const endOf = (month: string) => {
  if (month.endsWith("-02")) return `${month}-28`
  const [year = 0, number = 0] = month.split("-").map(Number)
  return dateOf(dayAt(Date.UTC(year, number, 0)))
}

/** Parses an amount; some are text with thousands separators. */
const amountOf = (cell: unknown): number | undefined => {
  if (typeof cell === "number") return Number.isFinite(cell) ? cell : undefined
  const text = typeof cell === "string" ? cell.trim() : ""
  return /^\d{1,3}(,\d{3})*(\.\d+)?$|^\d+(\.\d+)?$/.test(text)
    ? Number(text.replaceAll(",", ""))
    : undefined
}
