/** The rows of a CSV file, compared with a library that takes thirty times as long. */
import { parse } from "csv-parse/sync"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type CsvRow,
  columns_max,
  csvRows,
  row_bytes_max,
} from "#adapters/carrier-search/csv-rows.ts"

const cellOf = ({ bytes, from, to, has_quotes }: CsvRow, cell: number) => {
  const text = bytes.toString("utf8", from[cell], to[cell])
  return has_quotes[cell] === 1 ? text.replaceAll('""', '"') : text
}

/** Each row as cells, and each malformed line; read in chunks of `size` bytes. */
const read = (text: string | Buffer, size = 7) => {
  const rows: Array<ReadonlyArray<string>> = []
  const lines: Array<number> = []
  const malformed: Array<number> = []
  const reader = csvRows(
    (row) => {
      rows.push(Array.from({ length: row.cells }, (_, cell) => cellOf(row, cell)))
      lines.push(row.line)
    },
    (line) => malformed.push(line),
  )
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
  reader.end()
  return { rows, lines, malformed }
}

const cell = fc.oneof(
  fc.stringMatching(/^[A-Z0-9 .'-]{0,12}$/),
  fc.string({ maxLength: 8 }),
  fc.constantFrom('"', '""', ",", "\n", "\r\n", "a\nb", 'He said "no"', "Ž, Ü", "運送"),
)
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
const written = (text: string, is_quoted: boolean) =>
  is_quoted || /[",\r\n\uFEFF]/.test(text) ? quoted(text) : text

const table = fc.record({
  rows: fc.array(fc.array(fc.tuple(cell, fc.boolean()), { minLength: 1, maxLength: 5 }), {
    maxLength: 12,
  }),
  end: fc.constantFrom("\n", "\r\n"),
  is_ended: fc.boolean(),
  mark: fc.constantFrom("", "\uFEFF"),
  size: fc.integer({ min: 1, max: 40 }),
})

describe("rows of CSV", () => {
  it("are those that the library reads, cut into pieces anywhere", () => {
    fc.assert(
      fc.property(table, ({ rows, end, is_ended, mark, size }) => {
        const lines = rows.map((row) => row.map((one) => written(...one)).join(","))
        const text = `${mark}${lines.join(end)}${is_ended ? end : ""}`
        const expected = parse(text, {
          bom: true,
          relax_column_count: true,
          record_delimiter: end,
        }) as Array<Array<string>>
        const isBlank = (row: ReadonlyArray<string>) => row.every((one) => /^ *$/.test(one))
        const found = read(text, size)
        expect(found.rows).toEqual(expected.filter((row) => !isBlank(row)))
        expect(found.malformed).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  it("say in which line they begin", () => {
    const text = 'a,b\n"1\n2\r\n3",x\n\n,\nlast,row'
    const { rows, lines } = read(text)
    expect(rows).toEqual([
      ["a", "b"],
      ["1\n2\r\n3", "x"],
      ["last", "row"],
    ])
    expect(lines).toEqual([1, 2, 7])
  })

  it("keep a quote inside a cell that does not begin with one", () => {
    expect(read('JOE "BIG" X,5" PIPE\n').rows).toEqual([['JOE "BIG" X', '5" PIPE']])
  })

  it("leave out only the line whose quote does not match", () => {
    const text = 'a,b\n"open,1\nc,d\n"x"y,2\ne,"f"\n'
    expect(read(text)).toEqual({
      rows: [
        ["a", "b"],
        ["c", "d"],
        ["e", "f"],
      ],
      lines: [1, 3, 5],
      malformed: [2, 4],
    })
  })

  it("leave out a line whose quote is open until the end", () => {
    expect(read('a\n"open\nb\nc')).toMatchObject({ rows: [["a"], ["b"], ["c"]], malformed: [2] })
  })

  it("leave out a row that is longer than any, and keep no more of it than that", () => {
    const long = "x".repeat(row_bytes_max * 3)
    const { rows, malformed } = read(`a\n${long}\nb\n"${long}"\nc\n`, 10_000)
    expect(rows).toEqual([["a"], ["b"], ["c"]])
    expect(malformed).toEqual([2, 4])
  })

  it("leave out a row of more cells than any", () => {
    const row = (cells: number) => Array(cells).fill("1").join(",")
    const { rows, malformed } = read(`${row(columns_max)}\n${row(columns_max + 1)}\na\n`)
    expect(rows.map(({ length }) => length)).toEqual([columns_max, 1])
    expect(malformed).toEqual([2])
  })
})
