/** Maps errors of PostgreSQL and of the connection to it. */
import pg from "pg"
import { DatabaseUnusable } from "#projections/database.ts"
import { causeText } from "#schemas/cause-text.ts"

/** The SQLSTATE of a server error, or the system's code of a connection error. */
const codeOf = (cause: unknown) =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""

/** Division by zero, which `fence` uses to fail. */
const fenced_code = "22012"

/** `lock_timeout` expired. */
const lock_timeout_code = "55P03"

/** `statement_timeout` expired, or the statement was cancelled. */
const query_canceled_code = "57014"

/** Maps a write error. After any of them, the projection waits and retries. */
export const failureOf = (cause: unknown): DatabaseUnusable => {
  if (cause instanceof DatabaseUnusable) return cause
  const code = codeOf(cause)
  if (code === fenced_code) {
    return new DatabaseUnusable({ detail: "Another process has written to it." })
  }
  if (code === lock_timeout_code) {
    const detail =
      "Another PostgreSQL session has held a lock for longer than database.lock_timeout_seconds: " +
      "see pg_locks and pg_stat_activity."
    return new DatabaseUnusable({ detail })
  }
  // The message is empty if all addresses of a name refused the connection.
  const message = causeText(cause) || "no connection"
  return new DatabaseUnusable({
    detail: `PostgreSQL: ${message}${code === "" ? "" : ` (${code})`}.`,
  })
}

/** Codes of connection errors; codes of certificate errors have several parts. */
const connection_codes = /^(E[A-Z]+|EAI_AGAIN)?$/

/** The server is unreachable, overloaded, starting or stopping: it may be retried. */
export const isUnavailable = (cause: unknown) =>
  (cause instanceof pg.DatabaseError ? /^(08|53|57P)/ : connection_codes).test(codeOf(cause))

/**
 * Codes of a temporary failure: connections (08), a rejected user or database (28, 3D), resources
 * (53), an operator or a timeout (57), and a missing schema or table, which the writer creates
 * again.
 */
const temporary_codes = /^(08|28|3D000|3F000|40P01|42P01|53|57)/

/**
 * Maps a read error. Clients do not see the server's name. Any other error of PostgreSQL is a
 * defect and is passed on unchanged.
 */
export const readFailureOf = (cause: unknown): unknown => {
  if (cause instanceof pg.DatabaseError && !temporary_codes.test(codeOf(cause))) return cause
  const detail =
    codeOf(cause) === query_canceled_code
      ? "The query exceeded database.statement_timeout_seconds: request less data, or raise the " +
        "setting."
      : "The database of the read models is unavailable."
  return new DatabaseUnusable({ detail })
}
