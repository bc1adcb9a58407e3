/** What PostgreSQL and the way to it fail with. */
import pg from "pg"
import { DatabaseUnusable } from "#projections/database.ts"
import { causeText } from "#schemas/cause-text.ts"

/** SQLSTATE of what a server refused, or the system's word for a connection that failed. */
const codeOf = (cause: unknown) =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""

/** By `fence`, in a statement that divides by the rows that it moved. */
const is_fenced = "22012"

/** SQLSTATE of a wait for a lock that was longer than `lock_timeout`. */
const is_locked = "55P03"

/** The same of a statement that was longer than `statement_timeout`, or that somebody ended. */
const is_ended = "57014"

/** Of a write: whatever it is, the projection waits and begins again. */
export const failureOf = (cause: unknown): DatabaseUnusable => {
  if (cause instanceof DatabaseUnusable) return cause
  const code = codeOf(cause)
  if (code === is_fenced) {
    return new DatabaseUnusable({ detail: "Another process has written to it meanwhile." })
  }
  if (code === is_locked) {
    const detail =
      "Another session of PostgreSQL's has a lock for longer than database.lock_timeout_seconds: " +
      "pg_locks and pg_stat_activity say which."
    return new DatabaseUnusable({ detail })
  }
  // Without a message where every address of a name refused.
  const said = causeText(cause) || "no connection"
  return new DatabaseUnusable({ detail: `PostgreSQL: ${said}${code === "" ? "" : ` (${code})`}.` })
}

/** The system's words for a way that is closed, or none; a certificate's have several parts. */
const is_closed = /^(E[A-Z]+|EAI_AGAIN)?$/

/** Of a server that cannot be reached, or has no room, or begins or ends: it may be tried again. */
export const isAway = (cause: unknown) =>
  (cause instanceof pg.DatabaseError ? /^(08|53|57P)/ : is_closed).test(codeOf(cause))

/**
 * Codes of a server that cannot answer now: connections (08), a user or a database that it refuses
 * (28, 3D), resources (53), an operator or a time limit (57), and a schema or a table that is not
 * there, which whoever writes makes again.
 */
const is_now = /^(08|28|3D000|3F000|40P01|42P01|53|57)/

/**
 * Of a read: a server that is away is told without its name, to whoever asked; what else PostgreSQL
 * refuses is a defect of ours, and answered as it came.
 */
export const readFailureOf = (cause: unknown): unknown => {
  if (cause instanceof pg.DatabaseError && !is_now.test(codeOf(cause))) return cause
  const detail =
    codeOf(cause) === is_ended
      ? "This needs longer than database.statement_timeout_seconds: ask for less, or raise that."
      : "The database of the read models cannot be used now."
  return new DatabaseUnusable({ detail })
}
