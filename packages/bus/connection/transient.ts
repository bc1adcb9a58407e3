/** Transient errors of a server or cluster, after which a request can be retried. */
import { JetStreamApiError } from "@nats-io/jetstream"
import { NoRespondersError, RequestError } from "@nats-io/transport-node"
import { LinkLost } from "./link.ts"

/** JetStream's codes for errors that end once its cluster has formed. */
const transient_codes: ReadonlySet<number> = new Set([
  10_005, // no suitable peers: they have not connected yet
  10_006, // the cluster is not active
  10_007, // the stream is not assigned to a server
  10_008, // no leader, "JetStream system temporarily unavailable"
  10_009, // this server is not the leader
])

/** Whether there is no responder: the stream is not loaded or is gone. Nothing is stored. */
export const isAbsent = (cause: unknown) =>
  cause instanceof NoRespondersError ||
  (cause instanceof Error && cause.name === "JetStreamNotEnabled") ||
  (cause instanceof RequestError && cause.isNoResponders())

/** Whether the request timed out: the server hangs or is gone. */
export const isLate = (cause: unknown) => cause instanceof Error && cause.name === "TimeoutError"

/** Whether the cluster reports that it is electing or losing a leader. */
export const isLeaderless = (cause: unknown) =>
  cause instanceof JetStreamApiError && transient_codes.has(cause.code)

/** Whether the request is worth retrying. */
export const isTransient = (cause: unknown) =>
  isAbsent(cause) || isLate(cause) || isLeaderless(cause) || cause instanceof LinkLost
