/**
 * A node's heart: it joins the cluster at the start, and then says at each interval that the node
 * lives and what it holds.
 *
 * Every node of a cluster reaches the same log and bus, so a heart asks no other node's leave: it
 * joins by a command, and its heartbeats are heard by every process.
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

/** Pause between two tries to join, in milliseconds: the log may be starting too. */
const join_retry_ms = 500

export interface HeartOptions {
  readonly cluster: string
  /** What this node says of itself. */
  readonly node: Omit<typeof JoinNode.Type, "type">
  readonly heartbeat_interval_seconds: number
  /** What the node holds now. */
  readonly usage: Effect.Effect<Omit<Heartbeat, "node_id">>
}

/**
 * What a heartbeat makes the node's state change to: an offline node is back, and a leaving node
 * that holds nothing and has nothing to move has left. Nothing else is ever changed by one.
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
 * Whether a node's capacity changed so much, by a quarter, that its share of the ring follows.
 * Smaller changes are only shown: each change of the ring moves blobs.
 */
const isOther = (now: bigint, joined: bigint) => 4n * now < 3n * joined || 4n * now > 5n * joined

/** Beats until it is interrupted. A log out of reach only delays it. */
export const heart = Effect.fnUntraced(function* (options: HeartOptions) {
  const { cluster, node, heartbeat_interval_seconds, usage } = options
  const commands = yield* Commands
  const log = yield* Log
  const live = yield* LiveNodes
  const { node_id } = node
  // A node that was asked to leave and has left stays away until it is started again.
  let leaving = false

  const send = Effect.fnUntraced(function* (command: ClusterCommand) {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const command_id = `heart-${node_id}-${command.type}-${at}`
    const origin = { command_id, actor: `node:${node_id}`, at }
    return yield* commands.send(origin, address(Cluster, cluster, command))
  })
  const join = send(JoinNode.make(node))
  const rejoin = (capacity_bytes: bigint) =>
    send(JoinNode.make({ ...node, capacity_bytes: String(capacity_bytes) }))

  const beat = Effect.gen(function* () {
    const heartbeat = { node_id, ...(yield* usage) }
    yield* live.beat(heartbeat)
    const known = yield* loadCluster(log, cluster)
    const member = known?.nodes.find((member) => member.node_id === node_id)
    if (member === undefined) return leaving ? undefined : yield* join
    leaving = member.state === "leaving"
    const { capacity_bytes } = heartbeat
    if (member.state === "active" && capacity_bytes !== undefined) {
      if (isOther(capacity_bytes, BigInt(member.capacity_bytes)))
        return yield* rejoin(capacity_bytes)
    }
    const command = commandOf(member.state, heartbeat)
    return command && (yield* send(command))
  })

  const warn = ({ detail }: { readonly detail: string }) =>
    Effect.logWarning(`The node ${node_id} waits for its cluster: ${detail}`)

  // Ended by a defect it would beat no more, and a node that serves would be taken for dead.
  const goesOn = Effect.catchDefect((defect: unknown) => Effect.fail({ detail: String(defect) }))

  yield* join.pipe(goesOn, Effect.tapError(warn), Effect.retry(Schedule.spaced(join_retry_ms)))
  return yield* beat.pipe(
    goesOn,
    Effect.catch(warn),
    Effect.repeat(Schedule.fixed(Duration.seconds(heartbeat_interval_seconds))),
    Effect.andThen(Effect.never),
  )
})
