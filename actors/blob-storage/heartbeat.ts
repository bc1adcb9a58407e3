/**
 * A node's heartbeat: it joins the cluster at startup and then publishes the node's usage at a
 * fixed interval.
 *
 * All nodes of a cluster share one log and one bus. So a node joins with a command, without
 * contacting other nodes, and every process receives its heartbeats.
 *
 * Source: document 1 §1, §4 rule 1; DECISIONS, document 1, heartbeats, the cluster's log.
 */
import { Clock, DateTime, Duration, Effect, Schedule } from "effect"
import { Cluster, loadCluster, type Member } from "#actors/blob-storage/cluster.ts"
import { type Heartbeat, LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { address, Commands } from "#actors/commands.ts"
import { Log } from "#events/log.ts"
import {
  type ClusterCommand,
  ConfirmLeave,
  JoinNode,
  ReviveNode,
} from "#schemas/blob-storage/cluster.ts"

/** Pause between attempts to join, in milliseconds: the log may still be starting. */
const join_retry_ms = 500

export interface HeartbeatOptions {
  readonly cluster: string
  /** The node's own registration. */
  readonly node: Omit<typeof JoinNode.Type, "type">
  readonly heartbeat_interval_seconds: number
  /** The node's current usage. */
  readonly usage: Effect.Effect<Omit<Heartbeat, "node_id">>
}

/**
 * The state change that follows from a heartbeat: an offline node returns, and a leaving node that
 * holds nothing and has nothing to move has left. No other state changes.
 */
export const commandOf = (
  state: Member["state"],
  { node_id, blob_count, progress }: Heartbeat,
): ClusterCommand | undefined => {
  if (state === "offline") return ReviveNode.make({ node_id })
  const is_empty = blob_count === 0n && (progress?.pending_migrations ?? 0n) === 0n
  return state === "leaving" && is_empty ? ConfirmLeave.make({ node_id }) : undefined
}

/**
 * Whether the capacity changed by at least a quarter, so that the node's share of the ring must
 * change. Smaller changes are only reported, because each change of the ring moves blobs.
 */
const needsRejoin = (now: bigint, joined: bigint) =>
  4n * now < 3n * joined || 4n * now > 5n * joined

/** Sends heartbeats until it is interrupted. It retries while the log is unreachable. */
export const sendHeartbeats = Effect.fnUntraced(function* (options: HeartbeatOptions) {
  const { cluster, node, heartbeat_interval_seconds, usage } = options
  const commands = yield* Commands
  const log = yield* Log
  const live = yield* LiveNodes
  const { node_id } = node
  // A node that has left on request rejoins only after a restart.
  let leaving = false

  const send = Effect.fnUntraced(function* (command: ClusterCommand) {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const command_id = `heart-${node_id}-${command.type}-${at}`
    const origin = { command_id, actor: `process:heartbeat-${node_id}`, at }
    return yield* commands.send(origin, address(Cluster, cluster, command))
  })
  const join = send(JoinNode.make(node))
  const rejoin = (capacity_bytes: bigint) =>
    send(JoinNode.make({ ...node, capacity_bytes: String(capacity_bytes) }))

  const beat = Effect.gen(function* () {
    const heartbeat = { node_id, ...(yield* usage) }
    yield* live.publish(heartbeat)
    const state = yield* loadCluster(log, cluster)
    const member = state?.nodes.find((member) => member.node_id === node_id)
    if (member === undefined) return leaving ? undefined : yield* join
    leaving = member.state === "leaving"
    const { capacity_bytes } = heartbeat
    if (member.state === "active" && capacity_bytes !== undefined) {
      if (needsRejoin(capacity_bytes, BigInt(member.capacity_bytes)))
        return yield* rejoin(capacity_bytes)
    }
    const command = commandOf(member.state, heartbeat)
    return command && (yield* send(command))
  })

  const warn = ({ detail }: { readonly detail: string }) =>
    Effect.logWarning(`Node ${node_id} cannot reach its cluster and retries: ${detail}`)

  // A defect must not end the heartbeats, or a node that still serves would be marked offline.
  const catchDefects = Effect.catchDefect((defect: unknown) =>
    Effect.fail({ detail: String(defect) }),
  )

  yield* join.pipe(
    catchDefects,
    Effect.tapError(warn),
    Effect.retry(Schedule.spaced(join_retry_ms)),
  )
  return yield* beat.pipe(
    catchDefects,
    Effect.catch(warn),
    Effect.repeat(Schedule.fixed(Duration.seconds(heartbeat_interval_seconds))),
    Effect.andThen(Effect.never),
  )
})
