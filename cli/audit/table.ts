/** Events as a table for people. */
import type { AuditEvent } from "#schemas/system/audit.ts"

/** Widest cell but the last, in characters: a hash or an id fits, a long name is cut. */
const cell_chars_max = 40

/** Widest data, in characters: the rest is in --json. */
const data_chars_max = 120

const head = ["POSITION", "AT", "ACTOR", "WHAT", "SUBJECT", "DATA"]

/** Control characters would let a stored text write on the operator's terminal. */
const printable = (text: string) => text.replaceAll(/\p{Cc}/gu, "?")

const cut = (text: string, chars_max: number) =>
  text.length > chars_max ? `${text.slice(0, chars_max - 3)}...` : text

const cells = ({
  position,
  index,
  at,
  actor,
  service,
  aggregate,
  type,
  subject,
  data,
}: AuditEvent) =>
  [
    `${position}.${index}`,
    at,
    cut(actor, cell_chars_max),
    cut(`${service}.${aggregate} ${type}`, 2 * cell_chars_max),
    cut(subject, cell_chars_max),
    cut(JSON.stringify(data), data_chars_max),
  ].map(printable)

const line = (row: ReadonlyArray<string>, widths: ReadonlyArray<number>) =>
  row
    .map((cell, i) => cell.padEnd(widths[i] ?? 0))
    .join("  ")
    .trimEnd()

/** A table with its head; its columns are as wide as they need to be. */
export const table = (events: ReadonlyArray<AuditEvent>) => {
  const rows = [head, ...events.map(cells)]
  const widths = head
    .slice(0, -1)
    .map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows.map((row) => line(row, widths)).join("\n")
}

/** Widths of a table that is not known as a whole, as a live one is not. */
const live_widths = [10, 24, 20, 40, 36]

/** One event as a line of a table without end. */
export const tableLine = (event: AuditEvent) => line(cells(event), live_widths)
