/** Formats events as a table that fits the terminal. */
import { formatValue } from "#cli/client/format.ts"
import type { Json } from "#cli/client/json.ts"
import { screen as ofProcess, type Screen } from "#cli/client/screen.ts"
import { table } from "#cli/client/table.ts"
import type { AuditEvent } from "#schemas/system/audit.ts"

/** The most important first: a narrow terminal drops the last ones. */
const columns = ["position", "at", "type", "subject", "actor", "service", "aggregate", "data"]

const rowOf = (event: AuditEvent, screen: Screen) => {
  const { position, index, at, type, subject, actor, service, aggregate } = event
  // Decoded from JSON.
  const data = event.data as Json
  return {
    position: `${position}.${index}`,
    at,
    type,
    subject,
    actor,
    service,
    aggregate,
    data: screen.columns === undefined ? data : formatValue("data", data),
  }
}

/** A table with a header, which is truncated only on a terminal. Ends without a newline. */
export const eventTable = (events: ReadonlyArray<AuditEvent>, screen = ofProcess()) => {
  const rows = events.map((event) => rowOf(event, screen))
  const { head, rowsOf } = table(rows, columns, screen)
  return (head + rowsOf(rows)).trimEnd()
}

/** An event with typical widths, which determines the columns of a live table. */
const usual: AuditEvent = {
  position: 1_000_000,
  index: 0,
  at: "2026-11-20T12:00:00.000Z",
  type: "ReconciliationFinished",
  subject: "01990000-0000-7000-8000-000000000001",
  actor: "process:share-protection-conductor",
  service: "share-protection",
  aggregate: "target-template",
  id: "main",
  data: "",
}

/** A live table: its header, and one row per event. */
export const liveTable = (screen = ofProcess()) => {
  const { head, rowsOf } = table([rowOf(usual, screen)], columns, screen)
  return {
    head: head.trimEnd(),
    row: (event: AuditEvent) => rowsOf([rowOf(event, screen)]).trimEnd(),
  }
}
