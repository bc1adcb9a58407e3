/**
 * The watchdog: marks silent nodes of the cluster as offline.
 *
 * The holder of a lease runs it, and `fence` is the number of its election. It may have missed
 * earlier heartbeats, so it grants every node a full deadline when it takes over and when the node
 * becomes active.
 *
 * Source: DECISIONS, document 1, heartbeats; DESIGN of the running system, 7.
 */
import { Clock, DateTime, Effect } from "effect"
import { Cluster, clusterAfter, eligible } from "#actors/blob-storage/cluster.ts"
import { LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { address } from "#actors/commands.ts"
import { type Due, type Process, runProcess } from "#actors/process.ts"
import { Log } from "#events/log.ts"
import { MarkNodeOffline } from "#schemas/blob-storage/cluster.ts"
import type { NodeId } from "#schemas/blob-storage/node.ts"

export interface WatchdogOptions {
  readonly cluster: string
  readonly fence: number
  readonly heartbeat_deadline_seconds: number
  readonly remove_after_seconds: number
}

/** The start of each watched node's deadline, as epoch milliseconds. */
type WatchedSince = ReadonlyMap<NodeId, number>

/** Keeps the start times of nodes that were already watched; new ones start now. */
const updateWatched = (
  before: WatchedSince,
  nodes: ReadonlyArray<NodeId>,
  now: number,
): WatchedSince => new Map(nodes.map((node_id) => [node_id, before.get(node_id) ?? now]))

const overdue = (
  { cluster, fence, heartbeat_deadline_seconds, remove_after_seconds }: WatchdogOptions,
  watched: WatchedSince,
  find: LiveNodes["Service"]["find"],
  now: number,
): Due => {
  const deadlines = [...watched].map(([node_id, since]) => {
    const silent_since = Math.max(since, find(node_id)?.received_at ?? 0)
    return { node_id, silent_since, deadline: silent_since + heartbeat_deadline_seconds * 1000 }
  })
  const next = Math.min(...deadlines.map(({ deadline }) => deadline).filter((at) => at > now))
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  const silent = deadlines.filter(({ deadline }) => deadline <= now)
  return {
    now: silent.map(({ node_id, silent_since: heard }) => ({
      command_id: `silent-${node_id}-${heard}-${fence}`,
      batch: [
        address(
          Cluster,
          cluster,
          MarkNodeOffline.make({ node_id, fence, at, remove_after_seconds }),
        ),
      ],
    })),
    ...(Number.isFinite(next) ? { next } : {}),
  }
}

const watchdogProcess = (options: WatchdogOptions, { find }: LiveNodes["Service"]): Process => ({
  name: "blob-storage-watchdog",
  part: `${Cluster.name}.${options.cluster}`,
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    let watched: WatchedSince = new Map()
    return {
      fold: Effect.fnUntraced(function* (recorded) {
        const cluster = yield* clusterAfter(log, recorded)
        const node_ids = eligible(cluster).map(({ node_id }) => node_id)
        watched = updateWatched(watched, node_ids, yield* Clock.currentTimeMillis)
      }),
      due: (now) => overdue(options, watched, find, now),
    }
  }),
})

/** Runs until it is interrupted, when the lease is lost. */
export const watchdog = Effect.fnUntraced(function* (options: WatchdogOptions) {
  return yield* runProcess(watchdogProcess(options, yield* LiveNodes))
})
