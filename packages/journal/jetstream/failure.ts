/** Maps errors of the bus to the log's own errors. */
import { JetStreamApiError } from "@nats-io/jetstream"
import {
  ClosedConnectionError,
  DrainingConnectionError,
  InvalidArgumentError,
  InvalidSubjectError,
  PermissionViolationError,
} from "@nats-io/transport-node"
import { isAbsent } from "#bus"
import { LogUnavailable, OutcomeUnknown, VersionConflict } from "#events/log.ts"

export type AppendFailure = VersionConflict | LogUnavailable | OutcomeUnknown

/** JetStream's codes for "wrong last sequence", with and without the actual sequence. */
const conflicts: ReadonlySet<number> = new Set([10_071, 10_164])

/** "Duplicate message id in batch": an attempt with unknown outcome stored it already. */
const duplicate = 10_201

/** "Store failed": a disk error or a limit of the stream; the description distinguishes them. */
const store_failed = 10_077
const stream_limit = /maximum (bytes|messages|message size)|insufficient/

/** Codes of class 5xx that the server sends before storing anything; others may come after. */
const refusals: ReadonlySet<number> = new Set([
  10_008, // no leader of the cluster's metadata
  10_009, // this server is not the leader
  10_023, // insufficient resources
  10_039, // JetStream is not enabled for the account
  10_047, // insufficient storage
  10_076, // JetStream is not enabled
])

/** Classifies an append error. Unknown errors count as an unknown outcome. */
export const appendFailure = (cause: unknown): AppendFailure => {
  if (cause instanceof LogUnavailable) return cause
  const detail = detailOf(cause)
  if (cause instanceof JetStreamApiError) {
    if (conflicts.has(cause.code)) return new VersionConflict({ detail })
    return isRefusal(cause) ? new LogUnavailable({ detail }) : new OutcomeUnknown({ detail })
  }
  return isUnsent(cause) ? new LogUnavailable({ detail }) : new OutcomeUnknown({ detail })
}

/** Maps a read error. */
export const readFailure = (cause: unknown) => new LogUnavailable({ detail: detailOf(cause) })

/**
 * Whether the server refused to write. Then nothing of a group is stored, and the error may concern
 * only one of its commands.
 */
export const isRefused = (cause: unknown) =>
  cause instanceof JetStreamApiError && !(appendFailure(cause) instanceof OutcomeUnknown)

const isRefusal = ({ code, status, message }: JetStreamApiError) => {
  if (code === duplicate) return false
  if (code === store_failed) return stream_limit.test(message)
  return status < 500 || refusals.has(code)
}

/** Errors that the client raises while sending, or the server before accepting the message. */
const isUnsent = (cause: unknown) =>
  isAbsent(cause) ||
  cause instanceof ClosedConnectionError ||
  cause instanceof DrainingConnectionError ||
  cause instanceof InvalidArgumentError ||
  cause instanceof InvalidSubjectError ||
  cause instanceof PermissionViolationError

const detailOf = (cause: unknown) => {
  if (cause instanceof JetStreamApiError) return `JetStream ${cause.code}: ${cause.message}`
  return cause instanceof Error ? `NATS: ${cause.message}` : String(cause)
}
