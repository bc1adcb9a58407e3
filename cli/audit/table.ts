/** Formats events as a table. */
import type { AuditEvent } from "#schemas/system/audit.ts"

/** Maximum width of cells before the last, in characters: hashes and ids fit. */
const cell_chars_max = 40

/** Maximum width of the data, in characters; --json has all of it. */
const data_chars_max = 120

const head = ["POSITION", "AT", "ACTOR", "WHAT", "SUBJECT", "DATA"]

/** Replaces control characters: stored text must not control the operator's terminal. */
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

/** A table with a header and fitting column widths. */
export const table = (events: ReadonlyArray<AuditEvent>) => {
  const rows = [head, ...events.map(cells)]
  const widths = head
    .slice(0, -1)
    .map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows.map((row) => line(row, widths)).join("\n")
}

/** Fixed column widths of a live table. */
const live_widths = [10, 24, 20, 40, 36]

/** One event as a row of a live table. */
export const tableLine = (event: AuditEvent) => line(cells(event), live_widths)
