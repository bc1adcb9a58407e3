/**
 * What one row of FMCSA's public files says of a docket: of the frozen L&I file ("legacy") and of
 * the daily one of Motus. Source: market facts B1.4 and B2.
 */
import { isUtf8 } from "node:buffer"
import { type CsvRow, trim } from "#adapters/carrier-search/csv-rows.ts"
import { dots } from "#adapters/carrier-search/mirror-file.ts"
import { mc_number_max } from "#schemas/carrier-search/carrier.ts"

/** The public files that are told apart by their header. */
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

/** Why a row cannot be used: counted, and told. */
export const problems = [
  "not as many cells as its header has, or quotes that do not match",
  "no docket number",
  "no USDOT number",
  "no status",
  "a name that is too long",
] as const
const [malformed, no_docket, no_dot, no_status, long_name] = [0, 1, 2, 3, 4] as const
export const malformed_row = malformed
export type Problem = 0 | 1 | 2 | 3 | 4

/** What a row is to the mirror. */
export interface Judge {
  /** An active carrier: of legacy one that may still be a broker under another row. */
  readonly carrier: (mc: number, dot: number, name: string) => void
  /** Legacy: this docket is an active broker's. Motus: so is everything of this USDOT number. */
  readonly broker: (mc: number, dot: number) => void
  /** Legacy: an active carrier or an active broker, which its name alone tells from others. */
  readonly unnumbered: (mc: number, name: string, is_broker: boolean) => void
  /** A docket by its number; 0 has another prefix than MC. */
  readonly docket: (mc: number) => void
  /** Motus: a USDOT number that it has. Legacy: whether Motus has it, so that the row is void. */
  readonly dot: (dot: number) => boolean
  readonly problem: (problem: Problem) => void
}

/** Legal names have 120 characters in the registry. */
const name_bytes_max = 1000

const [zero, nine, dash, letter_a, letter_m, letter_c] = [48, 57, 45, 65, 77, 67]
const upper = 0xdf

/** Digits alone, up to `max`; 0 of an empty cell, -1 of anything else. */
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

/** The number of an MC docket; 0 of another prefix, -1 of what is no docket. */
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
  digits(bytes, from[cell] ?? 0, to[cell] ?? 0, dots - 1)

const old_text = new TextDecoder("windows-1252")

/** A cell as text: UTF-8, or what Windows wrote where it is not that. */
const textOf = ({ bytes, from, to, has_quotes }: CsvRow, cell: number) => {
  const part = bytes.subarray(from[cell], to[cell])
  const text = isUtf8(part) ? part.toString("utf8") : old_text.decode(part)
  const plain = has_quotes[cell] === 1 ? text.replaceAll('""', '"') : text
  // SQLite ends a text at a NUL, which no name has.
  return plain.includes("\0") ? plain.replaceAll("\0", "").trim() : plain.trim()
}

const isLong = ({ from, to }: CsvRow, cell: number) =>
  (to[cell] ?? 0) - (from[cell] ?? 0) > name_bytes_max

/** A letter in upper case; 0 of an empty cell, -1 of a longer one. */
const letterOf = ({ bytes, from, to }: CsvRow, cell: number) => {
  const [begin, end] = [from[cell] ?? 0, to[cell] ?? 0]
  if (begin === end) return 0
  return end === begin + 1 && isLetter(bytes[begin]) ? (bytes[begin] ?? 0) & upper : -1
}

/** Reads a row, and answers why it cannot be used. */
type Reading = (row: CsvRow) => Problem | undefined

/** Authority A of common or contract is active; broker A drops it. Empty is never a guess. */
const legacy = (at: ReadonlyArray<number>, judge: Judge): Reading => {
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
    judge.docket(mc)
    if (mc === 0 || judge.dot(usdot) || !(is_shown || is_broker)) return undefined
    if (usdot === 0) judge.unnumbered(mc, textOf(row, name), is_broker)
    else if (is_broker) judge.broker(mc, usdot)
    else judge.carrier(mc, usdot, textOf(row, name))
    return undefined
  }
}

const carries = /^(Motor Carrier|Enterprise Motor Carrier|Mexico Domiciled Motor Carrier)/i
const arranges = /^(Broker|Freight Forwarder)/i

/** The USDOT number counts under any prefix: a forwarder's docket tells of its carrier's, too. */
const motus = (at: ReadonlyArray<number>, judge: Judge): Reading => {
  const [docket = 0, dot = 0, name = 0, type = 0, status = 0] = at
  return (row) => {
    const usdot = dotOf(row, dot)
    if (usdot <= 0) return no_dot
    const says = textOf(row, status)
    if (says === "") return no_status
    judge.dot(usdot)
    const what = says.toLowerCase() === "active" ? textOf(row, type) : ""
    const mc = docketOf(row, docket)
    if (mc >= 0) judge.docket(mc)
    if (arranges.test(what)) judge.broker(mc, usdot)
    if (mc === 0 || !carries.test(what)) return undefined
    // Of an application that is under way there need be no docket yet.
    if (mc < 0) return no_docket
    if (isLong(row, name)) return long_name
    judge.carrier(mc, usdot, textOf(row, name))
    return undefined
  }
}

/** Which file a header is of, or what it misses of the one it resembles. */
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

/** Reads the rows below a header: those of another length are malformed. */
export const judged = (
  { kind, at }: { readonly kind: Kind; readonly at: ReadonlyArray<number> },
  cells: number,
  judge: Judge,
): ((row: CsvRow) => void) => {
  const read = kind === "legacy" ? legacy(at, judge) : motus(at, judge)
  return (row) => {
    if (row.cells === cells) for (const cell of at) trim(row, cell)
    const problem = row.cells === cells ? read(row) : malformed
    if (problem !== undefined) judge.problem(problem)
  }
}
