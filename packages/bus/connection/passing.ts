/** What a server or a cluster of them says while it is not itself: asked again, it answers. */
import { JetStreamApiError } from "@nats-io/jetstream"
import { NoRespondersError, RequestError } from "@nats-io/transport-node"
import { LinkLost } from "./link.ts"

/** JetStream's codes for what passes when its cluster has found together. */
const passing: ReadonlySet<number> = new Set([
  10_005, // no suitable peers: those that are there have not met yet
  10_006, // the cluster is not active
  10_007, // the stream is not assigned to a server
  10_008, // no leader, "JetStream system temporarily unavailable"
  10_009, // this server is not the leader
])

/** Whether nobody listens: the server has not yet, or no longer, the stream. Nothing is stored. */
export const isAbsent = (cause: unknown) =>
  cause instanceof NoRespondersError ||
  (cause instanceof Error && cause.name === "JetStreamNotEnabled") ||
  (cause instanceof RequestError && cause.isNoResponders())

/** Whether the answer did not come in time: of a server that stands still, or is gone. */
export const isLate = (cause: unknown) => cause instanceof Error && cause.name === "TimeoutError"

/** Whether the cluster says that it is about to choose, or to lose, a leader. */
export const isLeaderless = (cause: unknown) =>
  cause instanceof JetStreamApiError && passing.has(cause.code)

/** Whether the same question is worth asking once more. */
export const isPassing = (cause: unknown) =>
  isAbsent(cause) || isLate(cause) || isLeaderless(cause) || cause instanceof LinkLost
