/**
 * The cluster's members, kept in memory from its commits, so that puts and gets do not read the
 * log.
 *
 * Source: document 1 §2 SyncRingResponse, §3; DECISIONS, document 1, the cluster's log.
 */
import { Effect } from "effect"
import {
  allOnlineSince,
  Cluster,
  type ClusterContext,
  clusterAfter,
  eligible,
} from "#actors/blob-storage/cluster.ts"
import type { Members, Peer } from "#actors/blob-storage/ports/peers.ts"
import type { Process } from "#actors/process.ts"
import { Log } from "#events/log.ts"
import { hostOf, type Placement, placement } from "#placement"
import type { NodeState } from "#schemas/blob-storage/node.ts"

const no_cluster: ClusterContext = {
  ring_version: 0,
  vnodes_per_node: 1,
  capacity_unit_bytes: "0",
  fence: 0,
  nodes: [],
  departed: [],
  departed_before: "",
}

const peersIn = ({ nodes }: ClusterContext, node_state: NodeState): ReadonlyArray<Peer> =>
  nodes
    .filter(({ state }) => state === node_state)
    .map(({ node_id, address }) => ({ node_id, address }))

/** Computes placements on first use, so that skipped ring versions cost nothing. */
const makePlacementCache = () => {
  let cached: Placement | undefined
  return (cluster: ClusterContext): Placement => {
    const { ring_version, vnodes_per_node } = cluster
    if (cached?.ring_version === ring_version) return cached
    const nodes = eligible(cluster).map(({ node_id, weight_percent, address }) => ({
      node_id,
      weight_percent,
      host: hostOf(address),
    }))
    cached = placement({ ring_version, vnodes_per_node, nodes })
    return cached
  }
}

/** The cluster as node `node_id` sees it; empty until the first commit. */
export const makeMembersCache = (node_id: string) => {
  const placementOf = makePlacementCache()
  let position = 0
  let node_ids: ReadonlySet<string> = new Set()

  const membersOf = (cluster: ClusterContext, was_leaving: boolean): Members => {
    const own = cluster.nodes.find((node) => node.node_id === node_id)
    return {
      node_id,
      ring_version: cluster.ring_version,
      active: peersIn(cluster, "active"),
      leaving: peersIn(cluster, "leaving"),
      offline: peersIn(cluster, "offline").map((peer) => peer.node_id),
      // A node that has left must not act as a separate cluster: it accepts nothing until it
      // rejoins.
      is_leaving: own === undefined ? was_leaving : own.state === "leaving",
      all_online_since: allOnlineSince(cluster),
      get placement() {
        return placementOf(cluster)
      },
    }
  }
  let members = membersOf(no_cluster, false)
  return {
    members: () => members,
    /** Log position of the commit that the members come from; 0 before the first. */
    position: () => position,
    /** Whether a node with this id is in the cluster, in any state. */
    isNode: (name: string) => node_ids.has(name),
    learn: (cluster: ClusterContext, at: number) => {
      // Commits may be delivered twice, and the cluster must not go back in time.
      if (at <= position) return
      position = at
      members = membersOf(cluster, members.is_leaving)
      node_ids = new Set(cluster.nodes.map((node) => node.node_id))
    },
  }
}

export type MembersCache = ReturnType<typeof makeMembersCache>

/**
 * How reads contact a node: "unheard" nodes are queried but not waited for, "never" are skipped.
 */
export type Reach = "reached" | "unheard" | "never"

/**
 * The members for gets and lists. Other nodes that are "never" reached count as offline. An
 * "unheard" node counts as offline only if it does not respond, because the bus may be down rather
 * than the node. If no node has a blob, the error names both kinds; no response waits for them.
 */
export const withReach = (
  members: Members,
  reachOf: (node_id: string, state: "active" | "leaving") => Reach,
): Members => {
  const { node_id: own, active, leaving, offline = [] } = members
  const isOf =
    (reach: Reach, state: "active" | "leaving") =>
    ({ node_id }: Peer) =>
      node_id !== own && reachOf(node_id, state) === reach
  const unreachable = [
    ...active.filter(isOf("never", "active")),
    ...leaving.filter(isOf("never", "leaving")),
  ]
  const unheard = leaving.filter(isOf("unheard", "leaving")).map(({ node_id }) => node_id)
  if (unreachable.length === 0 && unheard.length === 0) return members
  const isReachable = (peer: Peer) => !unreachable.includes(peer)
  return {
    ...members,
    active: active.filter(isReachable),
    leaving: leaving.filter(isReachable),
    offline: [...offline, ...unreachable.map(({ node_id }) => node_id)],
    unheard,
  }
}

/** Whether the copy includes the newest commit of the cluster in the log. */
export const isUpToDate = (
  log: Log["Service"],
  cluster: string,
  { position }: Pick<MembersCache, "position">,
) => Effect.map(log.head(`${Cluster.name}.${cluster}`), (head) => head === position())

/** Keeps the members of a cluster up to date; it sends no commands. */
export const membership = (cluster: string, { learn }: Pick<MembersCache, "learn">): Process => ({
  name: "blob-storage-members",
  part: `${Cluster.name}.${cluster}`,
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    return {
      fold: Effect.fnUntraced(function* (recorded) {
        learn(yield* clusterAfter(log, recorded), recorded.position)
      }),
      due: () => ({ now: [] }),
    }
  }),
})
