/**
 * Parses CSV rows as positions in the bytes, without creating strings or objects: a file of two
 * million rows takes a quarter of a second.
 *
 * Source: RFC 4180; decision 0092. Also accepts CRLF, and skips blank rows.
 */

/**
 * A row, valid until the next one. `from` and `to` are the positions of its cells in `bytes`,
 * without quotes.
 */
export interface CsvRow {
  readonly bytes: Buffer
  /** Line number of its start, from 1. */
  readonly line: number
  readonly cells: number
  readonly from: Int32Array
  readonly to: Int32Array
  /** 1 for cells that contain doubled quotes. */
  readonly has_quotes: Uint8Array
}

export interface CsvReader {
  /** The next bytes of the file, in chunks of any size. */
  readonly push: (chunk: Buffer) => void
  /** The end of the file, with or without a final line break. */
  readonly end: () => void
}

/** Maximum cells of a row: more than twice those of any public file. */
export const columns_max = 256
/**
 * Maximum bytes of a row, including quoted line breaks; rows of the widest file have about 2,000.
 */
export const row_bytes_max = 65_536

const [comma, quote, line_feed, carriage_return, space] = [44, 34, 10, 13, 32]
const byte_order_mark = Buffer.from([0xef, 0xbb, 0xbf])
const nothing: Buffer = Buffer.alloc(0)

type ScanResult = "row" | "malformed" | "cut off"

/** Finds the cells of one row at a time. */
const rowScanner = () => {
  const from = new Int32Array(columns_max)
  const to = new Int32Array(columns_max)
  const has_quotes = new Uint8Array(columns_max)
  // `next` is the position after the row, `breaks` its number of line breaks.
  const row = { bytes: nothing, line: 1, cells: 0, next: 0, breaks: 0, from, to, has_quotes }

  /** The position of the closing quote; -1 if it has not arrived yet. */
  const findClosingQuote = (bytes: Buffer, begin: number, cell: number) => {
    for (let at = begin; at + 1 < bytes.length; at++) {
      if (bytes[at] === line_feed) row.breaks++
      if (bytes[at] !== quote) continue
      if (bytes[at + 1] !== quote) return at
      has_quotes[cell] = 1
      at++
    }
    return -1
  }
  const scan = (bytes: Buffer, begin: number): ScanResult => {
    const { length } = bytes
    let at = begin
    row.breaks = 1
    for (let cell = 0; cell < columns_max; cell++) {
      from[cell] = at
      has_quotes[cell] = 0
      if (bytes[at] === quote) {
        from[cell] = at + 1
        at = findClosingQuote(bytes, at + 1, cell)
        if (at < 0) return "cut off"
        to[cell] = at++
        if (bytes[at] === carriage_return && bytes[at + 1] === line_feed) at++
        if (at >= length || (bytes[at] === carriage_return && at + 1 === length)) return "cut off"
        if (bytes[at] !== comma && bytes[at] !== line_feed) return "malformed"
      } else {
        const start = at
        while (at < length && bytes[at] !== comma && bytes[at] !== line_feed) at++
        if (at >= length) return "cut off"
        const has_return = bytes[at] === line_feed && bytes[at - 1] === carriage_return
        to[cell] = has_return && at > start ? at - 1 : at
      }
      if (bytes[at++] === line_feed) {
        row.cells = cell + 1
        row.next = at
        return "row"
      }
    }
    return "malformed"
  }
  return { row, scan }
}

/**
 * Calls `onRow` for each row that is not blank, and `onMalformed` with the number of each line that
 * cannot be parsed. Only that line is skipped, even if it opens a quote.
 */
export const csvRows = (
  onRow: (row: CsvRow) => void,
  onMalformed: (line: number) => void,
): CsvReader => {
  const { row, scan } = rowScanner()
  let has_begun = false
  /** Whether the next bytes belong to a malformed line. */
  let is_skipping = false

  const skipLine = (bytes: Buffer, begin: number) => {
    const end = bytes.indexOf(line_feed, begin)
    is_skipping = end < 0
    return is_skipping ? bytes.length : end + 1
  }
  const read = (bytes: Buffer, is_end: boolean) => {
    row.bytes = bytes
    let at = is_skipping ? skipLine(bytes, 0) : 0
    while (at < bytes.length) {
      const result = scan(bytes, at)
      if (result === "cut off" && !is_end && bytes.length - at <= row_bytes_max) break
      if (result === "row" && row.next - at <= row_bytes_max) {
        if (!isBlank(row)) onRow(row)
        row.line += row.breaks
        at = row.next
      } else {
        onMalformed(row.line++)
        at = skipLine(bytes, at)
      }
    }
    row.bytes = bytes.subarray(at)
  }
  return {
    push: (chunk) => {
      let bytes = row.bytes.length === 0 ? chunk : Buffer.concat([row.bytes, chunk])
      if (!has_begun) {
        row.bytes = bytes
        if (bytes.length < byte_order_mark.length) return
        has_begun = true
        if (bytes.indexOf(byte_order_mark) === 0) bytes = bytes.subarray(byte_order_mark.length)
      }
      read(bytes, false)
    },
    end: () => {
      if (row.bytes.length > 0) read(Buffer.concat([row.bytes, Buffer.of(line_feed)]), true)
      row.bytes = nothing
    },
  }
}

const isBlank = ({ bytes, cells, from, to }: CsvRow) => {
  for (let cell = 0; cell < cells; cell++) {
    for (let at = from[cell] ?? 0; at < (to[cell] ?? 0); at++) {
      if (bytes[at] !== space) return false
    }
  }
  return true
}

/** Trims the spaces around a cell. */
export const trim = ({ bytes, from, to }: CsvRow, cell: number): void => {
  let [begin, end] = [from[cell] ?? 0, to[cell] ?? 0]
  while (begin < end && bytes[begin] === space) begin++
  while (end > begin && bytes[end - 1] === space) end--
  from[cell] = begin
  to[cell] = end
}
