/**
 * Interprets one row of FMCSA's public files: the frozen L&I file ("legacy") and the daily Motus
 * file. Source: market facts B1.4 and B2.
 */
import { isUtf8 } from "node:buffer"
import { type CsvRow, trim } from "#adapters/carrier-search/csv-rows.ts"
import { dot_limit } from "#adapters/carrier-search/mirror-file.ts"
import { mc_number_max } from "#schemas/carrier-search/carrier.ts"

/** The public files, which differ by their header. */
export const kinds = ["legacy", "motus"] as const
export type Kind = (typeof kinds)[number]

const columns = {
  legacy: [
    "docket_number",
    "dot_number",
    "legal_name",
    "common_stat",
    "contract_stat",
    "broker_stat",
  ],
  motus: ["docket_number", "usdot_number", "legal_name", "op_auth_type", "op_auth_status"],
} as const satisfies Record<Kind, ReadonlyArray<string>>

/** Why a row is rejected, as reported. */
export const problems = [
  "a different number of cells than the header, or unbalanced quotes",
  "no docket number",
  "no USDOT number",
  "no status",
  "a name that is too long",
] as const
const [malformed, no_docket, no_dot, no_status, long_name] = [0, 1, 2, 3, 4] as const
export const malformed_row = malformed
export type Problem = 0 | 1 | 2 | 3 | 4

/** Receives the content of rows. */
export interface RowHandler {
  /** An active carrier. In legacy, another row may still make it a broker. */
  readonly carrier: (mc: number, dot: number, name: string) => void
  /** An active broker: of this docket in legacy, of the whole USDOT number in Motus. */
  readonly broker: (mc: number, dot: number) => void
  /** Legacy: an active carrier or broker without a USDOT number, identified by its name. */
  readonly unnumbered: (mc: number, name: string, is_broker: boolean) => void
  /** A docket number; 0 for a prefix other than MC. */
  readonly docket: (mc: number) => void
  /** Motus: records a USDOT number. Legacy: returns whether Motus has it and supersedes the row. */
  readonly dot: (dot: number) => boolean
  readonly problem: (problem: Problem) => void
}

/** Legal names have at most 120 characters in the registry. */
const name_bytes_max = 1000

const [zero, nine, dash, letter_a, letter_m, letter_c] = [48, 57, 45, 65, 77, 67]
const upper = 0xdf

/** Parses digits up to `max`; 0 for an empty cell, -1 for anything else. */
const digits = (bytes: Buffer, from: number, to: number, max: number) => {
  let value = 0
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0
    if (byte < zero || byte > nine || value > max) return -1
    value = value * 10 + byte - zero
  }
  return value > max ? -1 : value
}

const isLetter = (byte = 0) => (byte & upper) >= letter_a && (byte & upper) < letter_a + 26

/** The number of an MC docket; 0 for any other prefix, -1 for an invalid docket. */
const docketOf = ({ bytes, from, to }: CsvRow, cell: number) => {
  const [begin, end] = [from[cell] ?? 0, to[cell] ?? 0]
  let at = begin
  while (at < end && isLetter(bytes[at])) at++
  if (at === begin) return -1
  const is_mc =
    at === begin + 2 &&
    ((bytes[begin] ?? 0) & upper) === letter_m &&
    ((bytes[begin + 1] ?? 0) & upper) === letter_c
  if (bytes[at] === dash) at++
  const number = digits(bytes, at, end, mc_number_max)
  if (number <= 0) return -1
  return is_mc ? number : 0
}

const dotOf = ({ bytes, from, to }: CsvRow, cell: number) =>
  digits(bytes, from[cell] ?? 0, to[cell] ?? 0, dot_limit - 1)

const windows_1252 = new TextDecoder("windows-1252")

/** Decodes a cell as UTF-8, or as Windows-1252 if it is not valid UTF-8. */
const textOf = ({ bytes, from, to, has_quotes }: CsvRow, cell: number) => {
  const part = bytes.subarray(from[cell], to[cell])
  const text = isUtf8(part) ? part.toString("utf8") : windows_1252.decode(part)
  const plain = has_quotes[cell] === 1 ? text.replaceAll('""', '"') : text
  // SQLite truncates text at a NUL, which no name contains.
  return plain.includes("\0") ? plain.replaceAll("\0", "").trim() : plain.trim()
}

const isLong = ({ from, to }: CsvRow, cell: number) =>
  (to[cell] ?? 0) - (from[cell] ?? 0) > name_bytes_max

/** A single letter in upper case; 0 for an empty cell, -1 for anything else. */
const letterOf = ({ bytes, from, to }: CsvRow, cell: number) => {
  const [begin, end] = [from[cell] ?? 0, to[cell] ?? 0]
  if (begin === end) return 0
  return end === begin + 1 && isLetter(bytes[begin]) ? (bytes[begin] ?? 0) & upper : -1
}

/** Interprets a row; returns why it is rejected. */
type RowParser = (row: CsvRow) => Problem | undefined

/** Active if common or contract is A, excluded if broker is A. Empty cells are never guessed. */
const legacy = (at: ReadonlyArray<number>, handler: RowHandler): RowParser => {
  const [docket = 0, dot = 0, name = 0, common = 0, contract = 0, broker = 0] = at
  return (row) => {
    const mc = docketOf(row, docket)
    if (mc < 0) return no_docket
    const usdot = dotOf(row, dot)
    if (usdot < 0) return no_dot
    const [a, b, c] = [letterOf(row, common), letterOf(row, contract), letterOf(row, broker)]
    const is_active = a === letter_a || b === letter_a
    if (a < 0 || b < 0 || c < 0 || (is_active && c === 0)) return no_status
    const is_broker = c === letter_a
    const is_shown = is_active && !is_broker
    if (is_shown && isLong(row, name)) return long_name
    handler.docket(mc)
    if (mc === 0 || handler.dot(usdot) || !(is_shown || is_broker)) return undefined
    if (usdot === 0) handler.unnumbered(mc, textOf(row, name), is_broker)
    else if (is_broker) handler.broker(mc, usdot)
    else handler.carrier(mc, usdot, textOf(row, name))
    return undefined
  }
}

const carrier_types = /^(Motor Carrier|Enterprise Motor Carrier|Mexico Domiciled Motor Carrier)/i
const broker_types = /^(Broker|Freight Forwarder)/i

/** The USDOT number counts for any docket prefix: a forwarder's docket excludes its carrier too. */
const motus = (at: ReadonlyArray<number>, handler: RowHandler): RowParser => {
  const [docket = 0, dot = 0, name = 0, type = 0, status = 0] = at
  return (row) => {
    const usdot = dotOf(row, dot)
    if (usdot <= 0) return no_dot
    const authority_status = textOf(row, status)
    if (authority_status === "") return no_status
    handler.dot(usdot)
    const active_type = authority_status.toLowerCase() === "active" ? textOf(row, type) : ""
    const mc = docketOf(row, docket)
    if (mc >= 0) handler.docket(mc)
    if (broker_types.test(active_type)) handler.broker(mc, usdot)
    if (mc === 0 || !carrier_types.test(active_type)) return undefined
    // A pending application may have no docket yet.
    if (mc < 0) return no_docket
    if (isLong(row, name)) return long_name
    handler.carrier(mc, usdot, textOf(row, name))
    return undefined
  }
}

/** The file kind of a header, or the missing columns of the most similar kind. */
export const layoutOf = (
  row: CsvRow,
): { readonly kind: Kind; readonly at: ReadonlyArray<number> } | { readonly missing: string } => {
  const names = Array.from({ length: row.cells }, (_, cell) =>
    textOf(row, cell).toLowerCase().replaceAll(" ", "_"),
  )
  const found = kinds.map((kind) => {
    const at = columns[kind].map((column) => names.indexOf(column))
    return { kind, at, missing: columns[kind].filter((_, i) => at[i] === -1) }
  })
  const [best] = found.toSorted((one, other) => one.missing.length - other.missing.length)
  if (best === undefined) return { missing: "" }
  return best.missing.length === 0 ? best : { missing: `${best.kind}: ${best.missing.join(", ")}` }
}

/** Interprets the rows below a header; rows with a different number of cells are malformed. */
export const rowReader = (
  { kind, at }: { readonly kind: Kind; readonly at: ReadonlyArray<number> },
  cells: number,
  handler: RowHandler,
): ((row: CsvRow) => void) => {
  const read = kind === "legacy" ? legacy(at, handler) : motus(at, handler)
  return (row) => {
    if (row.cells === cells) for (const cell of at) trim(row, cell)
    const problem = row.cells === cells ? read(row) : malformed
    if (problem !== undefined) handler.problem(problem)
  }
}
