/**
 * The membership of a simulated cluster: the real aggregate, a watchdog, and what each node knows
 * of both. The log is a separate host on the network, from which a node may be cut off.
 */
import { Result } from "effect"
import {
  allOnlineSince,
  Cluster,
  type ClusterContext,
  eligible,
} from "#actors/blob-storage/cluster.ts"
import type { Members, Peer } from "#actors/blob-storage/ports/peers.ts"
import { type Placement, placement } from "#placement"
import {
  type ClusterCommand,
  ConfirmLeave,
  JoinNode,
  LeaveNode,
  MarkNodeOffline,
  ReviveNode,
} from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import type { Network } from "./network.ts"
import { ms_ns, type World } from "./world.ts"

/** The log's name on the network. */
export const log_id = "log"

/** Few points per node, so that tables are computed quickly; the partition table balances them. */
const vnodes_per_node = 8
const beat_ms = 5000
const deadline_ms = 15_000
/** A node that is offline for this long is removed: it returns with an outdated disk. */
const remove_after_seconds = 45
/** Maximum delay of news in milliseconds; sometimes a thousand times as long. */
const news_ms_max = 20
const slow_news = 0.15
const slower = 1000
const again_ms = 1000
/** Duration of each direction of a query to the log. */
const ask_ms = 1

const tib = 2n ** 40n

const tables = new Map<string, Placement>()

/** The partition table of these nodes. Cached, because it depends only on them. */
export const tableOf = (context: ClusterContext): Placement => {
  const nodes = eligible(context).map(({ node_id, weight_percent }) => ({
    node_id,
    weight_percent,
  }))
  const key = JSON.stringify(nodes)
  const known = tables.get(key) ?? placement({ ring_version: 0, vnodes_per_node, nodes })
  tables.set(key, known)
  return { ...known, ring_version: context.ring_version }
}

const peerOf = ({ node_id, address }: Peer): Peer => ({ node_id, address })

/** Whether the node is leaving, or has left and not returned. */
const isLeaving = (node_id: string, history: ReadonlyArray<ClusterContext>) => {
  const states = history.flatMap(
    ({ nodes }) => nodes.find((node) => node.node_id === node_id) ?? [],
  )
  return states.at(-1)?.state === "leaving"
}

const membersOf = (
  node_id: string,
  context: ClusterContext,
  table: Placement,
  is_leaving: boolean,
): Members => ({
  node_id,
  is_leaving,
  all_online_since: allOnlineSince(context),
  ring_version: context.ring_version,
  active: eligible(context).map(peerOf),
  leaving: context.nodes.filter(({ state }) => state === "leaving").map(peerOf),
  placement: table,
})

export interface Membership {
  /** The present state, without the delay of news. */
  readonly current: () => ClusterContext
  /** The members as the node knows them. */
  readonly membersOf: (node_id: string) => Members
  /** Queries the log for news that the node lacks; rejects if the node is cut off. */
  readonly isCurrent: (node_id: string) => Promise<boolean>
  /** Starts the node's process, which knows nothing until it has read the log. */
  readonly begin: (node_id: string) => void
  readonly join: (node_id: string, weight: bigint) => void
  readonly leave: (node_id: string, graceful: boolean) => void
  /** The node has nothing left to move; refused if it is not leaving. */
  readonly confirmLeave: (node_id: string) => boolean
  readonly stateOf: (node_id: string) => string | undefined
}

export interface MembershipParts {
  readonly world: World
  readonly network: Network
  readonly isUp: (node_id: string) => boolean
}

/** The log, and the position up to which each node has read it. */
const makeLog = ({ world, network, isUp }: MembershipParts) => {
  let state = Cluster.initialState
  // The decider's state is a snapshot of the cluster's chart.
  const contextOf = () => state.context as ClusterContext
  const history: Array<ClusterContext> = [contextOf()]
  const seen = new Map<string, number>()
  const views = new Map<string, { readonly version: number; readonly members: Members }>()

  const canReceive = (node_id: string) => isUp(node_id) && !network.isBlocked(log_id, node_id)
  const deliver = (node_id: string, version: number) => {
    const fast_ms = world.random.next() * news_ms_max
    world.after(world.happens("news are late", slow_news) ? fast_ms * slower : fast_ms, () => {
      if (canReceive(node_id)) seen.set(node_id, Math.max(seen.get(node_id) ?? 0, version))
      else if (isUp(node_id)) world.after(again_ms, () => deliver(node_id, version))
    })
  }
  return {
    contextOf,
    timers: () => Cluster.timers(state),
    send: (command: ClusterCommand) => {
      const decided = Cluster.decide(state, command)
      if (Result.isFailure(decided)) return false
      if (decided.success.length === 0) return true
      state = Cluster.after(state, decided.success)
      history.push(contextOf())
      for (const { type } of decided.success) world.count(type)
      world.note(decided.success.map((event) => Object.values(event).join(" ")).join("; "))
      for (const node_id of seen.keys()) deliver(node_id, history.length - 1)
      return true
    },
    isCurrent: async (node_id: string) => {
      await world.pause(ask_ms)
      if (network.isBlocked(node_id, log_id)) throw new Error("the log cannot be asked")
      const newest = history.length - 1
      await world.pause(ask_ms)
      if (!canReceive(node_id)) throw new Error("the log does not answer")
      return seen.get(node_id) === newest
    },
    begin: (node_id: string) => {
      seen.set(node_id, 0)
      deliver(node_id, history.length - 1)
    },
    membersSeenBy: (node_id: string) => {
      const version = seen.get(node_id) ?? 0
      const known = views.get(node_id)
      if (known?.version === version) return known.members
      const context = history[version] ?? contextOf()
      const is_leaving = isLeaving(node_id, history.slice(0, version + 1))
      const members = membersOf(node_id, context, tableOf(context), is_leaving)
      views.set(node_id, { version, members })
      return members
    },
  }
}

export const makeMembership = (parts: MembershipParts): Membership => {
  const { world, network, isUp } = parts
  const { contextOf, timers, send, begin, membersSeenBy, isCurrent } = makeLog(parts)
  const heartbeats = new Map<string, number>()

  const canSend = (node_id: string) => isUp(node_id) && !network.isBlocked(node_id, log_id)
  const instant = () => new Date(Number(world.now() / ms_ns)).toISOString()
  const look = () => {
    const at = instant()
    for (const { node_id, state } of contextOf().nodes) {
      if (canSend(node_id)) {
        heartbeats.set(node_id, world.ms())
        if (state === "offline") send(ReviveNode.make({ node_id }))
      } else if (state === "active" && world.ms() - (heartbeats.get(node_id) ?? 0) > deadline_ms) {
        send(MarkNodeOffline.make({ node_id, fence: 1, at, remove_after_seconds }))
      }
    }
    for (const { due, command } of timers()) if (due <= at) send(command)
    world.after(beat_ms, look)
  }
  world.after(beat_ms, look)
  return {
    begin,
    membersOf: membersSeenBy,
    isCurrent,
    current: contextOf,
    join: (node_id, weight) => {
      const address = `${node_id}.test:1`
      const capacity_bytes = String(tib * weight)
      const node = { node_id: NodeId.make(node_id), address, capacity_bytes, vnodes_per_node }
      heartbeats.set(node_id, world.ms())
      send(JoinNode.make(node))
    },
    leave: (node_id, graceful) => {
      send(LeaveNode.make({ node_id: NodeId.make(node_id), graceful, at: instant() }))
    },
    confirmLeave: (node_id) =>
      canSend(node_id) && send(ConfirmLeave.make({ node_id: NodeId.make(node_id) })),
    stateOf: (node_id) => contextOf().nodes.find((node) => node.node_id === node_id)?.state,
  }
}
