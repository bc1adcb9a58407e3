/**
 * The cluster: its members and the version of its ring.
 *
 * The node's chart decides which events a node accepts. The cluster adds the rules that go beyond
 * one node: the maximum number of members, the ring, and the fence of the current watchdog.
 *
 * Source: document 1 §3, §4 ClusterService; DECISIONS, document 1, join, heartbeats, leave.
 */
import { DateTime, Effect, Struct } from "effect"
import { and, assign, type SnapshotFrom, setup } from "xstate"
import { canHappen, stateAfter } from "#actors/blob-storage/node.ts"
import { decider } from "#actors/decider.ts"
import { stateAfter as stateAfterCommit } from "#actors/host.ts"
import {
  ClusterEvent,
  NodeActivated,
  NodeChanged,
  type NodeEvent,
  NodeJoined,
  NodeLeaveStarted,
  NodeLeft,
  NodeRemoved,
  NodeRevived,
  NodeWentOffline,
  RingConfigured,
} from "#events/blob-storage/cluster.ts"
import type { Log, Recorded } from "#events/log.ts"
import { domainsOf, hostOf, weightPercent } from "#placement"
import {
  ClusterCommand,
  ClusterFull,
  ClusterRejection,
  type JoinNode,
  NodeAbsent,
  NodeRefuses,
  nodes_max,
  RemoveNode,
  Superseded,
} from "#schemas/blob-storage/cluster.ts"
import type { NodeId, NodeState } from "#schemas/blob-storage/node.ts"

/** Maximum number of departed nodes in the snapshot. */
const departed_max = 8

/** The capacity unit if the first node contributes no capacity: 1 TiB. */
const capacity_unit_default = String(2 ** 40)

export interface Member {
  readonly node_id: NodeId
  readonly address: string
  readonly capacity_bytes: string
  readonly weight_percent: number
  readonly state: NodeState
  /** RFC 3339; set while the node is offline. */
  readonly remove_at?: string
}

/** A node that was removed while its blobs were still on its disk. */
interface Departed {
  readonly node_id: NodeId
  /** RFC 3339; empty if the log has no time for it. */
  readonly at: string
}

export interface ClusterContext {
  readonly ring_version: number
  readonly vnodes_per_node: number
  readonly capacity_unit_bytes: string
  /** The highest fence of any watchdog so far. */
  readonly fence: number
  /** Sorted by node_id. */
  readonly nodes: ReadonlyArray<Member>
  /** Removed nodes that may return with their disks, oldest first; at most eight. */
  readonly departed: ReadonlyArray<Departed>
  /** When the newest node dropped from `departed` was removed; empty if none was dropped. */
  readonly departed_before: string
}

type Context = ClusterContext

const find = ({ nodes }: Context, node_id: NodeId) => nodes.find((node) => node.node_id === node_id)

/** Nodes on the ring, which receive new blobs. */
export const eligible = ({ nodes }: Context) => nodes.filter(({ state }) => state === "active")

const ns_per_ms = 1_000_000n
const present: ReadonlySet<NodeState> = new Set(["active", "leaving"])

/**
 * The time (Unix nanoseconds) of the last removal of a node: present members hold every copy of
 * blobs put later. Undefined while a member is offline or joining.
 */
export const allOnlineSince = ({
  nodes,
  departed,
  departed_before,
}: Context): bigint | undefined => {
  if (!nodes.every(({ state }) => present.has(state))) return undefined
  const times = [departed_before, ...departed.map(({ at }) => at)].filter((at) => at !== "")
  const last_ms = Math.max(0, ...times.map((at) => Date.parse(at)))
  return BigInt(last_ms) * ns_per_ms
}

/** Assigns ring members to hosts, if that affects placement: some but not all share a host. */
const hostsText = (nodes: ReadonlyArray<Member>) => {
  const { domain_of, sizes } = domainsOf(nodes.map(({ address }) => hostOf(address)))
  return sizes.length === 1 || sizes.length === nodes.length ? [] : [domain_of]
}

const ringText = (context: Context) => {
  const on_ring = eligible(context)
  const nodes = on_ring.map(({ node_id, weight_percent }) => [node_id, weight_percent])
  if (nodes.length === 0) return ""
  return JSON.stringify([context.vnodes_per_node, nodes, ...hostsText(on_ring)])
}

/** Increments the ring version if the ring differs from that of `before`. */
const versioned = (before: Context, after: Context): Context => {
  const changed = ringText(before) !== ringText(after)
  return { ...after, ring_version: before.ring_version + (changed ? 1 : 0) }
}

const fields = (event: NodeEvent): Partial<Member> => {
  if (event.type === "NodeJoined" || event.type === "NodeChanged")
    return Struct.omit(event, ["type"])
  return event.type === "NodeWentOffline" ? { remove_at: event.remove_at } : {}
}

/** The member after an event; undefined if it is no longer a member. */
const memberAfter = (before: Member | undefined, event: NodeEvent): Member | undefined => {
  const state = stateAfter(before?.state, event)
  if (state === undefined) return undefined
  // NodeJoined sets every field of a member, and all other events require an existing member.
  const { remove_at, ...member } = { ...before, ...fields(event), state } as Member
  return state === "offline" && remove_at !== undefined ? { ...member, remove_at } : member
}

/** Removed nodes remain listed until they join again. */
const departedAfter = ({ departed, departed_before }: Context, event: NodeEvent) => {
  if (event.type !== "NodeRemoved" && event.type !== "NodeJoined") return {}
  const others = departed.filter(({ node_id }) => node_id !== event.node_id)
  if (event.type === "NodeJoined") return { departed: others }
  const all = [...others, { node_id: event.node_id, at: event.at ?? "" }]
  const forgotten = all.slice(0, Math.max(0, all.length - departed_max))
  const times = [departed_before, ...forgotten.map(({ at }) => at)]
  return {
    departed: all.slice(forgotten.length),
    departed_before: times.sort().at(-1) ?? "",
  }
}

const nodeChanged = (context: Context, event: NodeEvent): Context => {
  const after = memberAfter(find(context, event.node_id), event)
  const others = context.nodes.filter(({ node_id }) => node_id !== event.node_id)
  const nodes = after === undefined ? others : [...others, after]
  const fence = event.type === "NodeWentOffline" ? event.fence : context.fence
  const sorted = nodes.sort((a, b) => (a.node_id < b.node_id ? -1 : 1))
  const departed = departedAfter(context, event)
  return versioned(context, { ...context, ...departed, fence, nodes: sorted })
}

const chart = setup({
  types: { context: {} as Context, events: {} as ClusterEvent },
  guards: {
    another_ring: ({ context, event }) =>
      event.type === "RingConfigured" && event.vnodes_per_node !== context.vnodes_per_node,
    can_happen: ({ context, event }) =>
      event.type !== "RingConfigured" && canHappen(find(context, event.node_id)?.state, event),
    has_room: ({ context }) => context.nodes.length < nodes_max,
    is_current: ({ context, event }) =>
      event.type === "NodeWentOffline" && event.fence >= context.fence,
  },
  actions: {
    configure: assign(({ context, event }) => {
      if (event.type !== "RingConfigured") return context
      return versioned(context, { ...context, ...Struct.omit(event, ["type"]) })
    }),
    change_node: assign(({ context, event }) =>
      event.type === "RingConfigured" ? context : nodeChanged(context, event),
    ),
  },
})

const change = { guard: "can_happen", actions: "change_node" } as const

export const machine = chart.createMachine({
  id: "blob-storage.cluster",
  context: {
    ring_version: 0,
    vnodes_per_node: 0,
    capacity_unit_bytes: "0",
    fence: 0,
    nodes: [],
    departed: [],
    departed_before: "",
  },
  initial: "unformed",
  states: {
    unformed: {
      on: { RingConfigured: { target: "formed", guard: "another_ring", actions: "configure" } },
    },
    formed: {
      on: {
        RingConfigured: { guard: "another_ring", actions: "configure" },
        NodeJoined: { guard: and(["can_happen", "has_room"]), actions: "change_node" },
        NodeActivated: change,
        NodeChanged: change,
        NodeWentOffline: { guard: and(["can_happen", "is_current"]), actions: "change_node" },
        NodeRevived: change,
        NodeLeaveStarted: change,
        NodeLeft: change,
        NodeRemoved: change,
      },
    },
  },
})

const join = (command: typeof JoinNode.Type, context: Context): ReadonlyArray<ClusterEvent> => {
  const { node_id, address, capacity_bytes, vnodes_per_node } = command
  const first = capacity_bytes === "0" ? capacity_unit_default : capacity_bytes
  const capacity_unit_bytes = context.vnodes_per_node === 0 ? first : context.capacity_unit_bytes
  const weight_percent = weightPercent(capacity_bytes, capacity_unit_bytes)
  const node = { node_id, address, capacity_bytes, weight_percent }

  const configured =
    context.vnodes_per_node === vnodes_per_node
      ? []
      : [RingConfigured.make({ vnodes_per_node, capacity_unit_bytes })]
  const member = find(context, node_id)
  if (member === undefined) {
    return [...configured, NodeJoined.make(node), NodeActivated.make({ node_id })]
  }
  const same = member.address === address && member.capacity_bytes === capacity_bytes
  const changed = same ? [] : [NodeChanged.make(node)]
  const revived = member.state === "offline" ? [NodeRevived.make({ node_id })] : []
  return [...configured, ...changed, ...revived]
}

/** Adds seconds to an RFC 3339 time. */
const later = (at: string, seconds: number) =>
  DateTime.formatIso(DateTime.add(DateTime.makeUnsafe(at), { seconds }))

const reject = (
  { context }: SnapshotFrom<typeof machine>,
  command: ClusterCommand,
): ClusterRejection => {
  if (command.type === "JoinNode") {
    return new ClusterFull({ detail: `The cluster already has the maximum of ${nodes_max} nodes.` })
  }
  const member = find(context, command.node_id)
  if (member === undefined)
    return new NodeAbsent({ detail: `The cluster has no node ${command.node_id}.` })
  if (command.type === "MarkNodeOffline" && command.fence < context.fence) {
    return new Superseded({
      detail: `Fence ${command.fence} is older than ${context.fence}: another process leads now.`,
    })
  }
  return new NodeRefuses({ detail: `The node is ${member.state} and rejects ${command.type}.` })
}

/**
 * Version 1 snapshots did not list departed nodes, so they cannot be upcast: the history is folded
 * until the cluster's next commit.
 */
export const Cluster = decider({
  machine,
  version: 2,
  command: ClusterCommand,
  event: ClusterEvent,
  rejection: ClusterRejection,
  propose: {
    JoinNode: join,
    LeaveNode: ({ node_id, graceful, at }, context) => {
      const when = at === undefined ? {} : { at }
      if (!graceful) return [NodeRemoved.make({ node_id, reason: "left_at_once", ...when })]
      const leaving = find(context, node_id)?.state === "leaving"
      return leaving ? [] : [NodeLeaveStarted.make({ node_id })]
    },
    ConfirmLeave: ({ node_id }) => [NodeLeft.make({ node_id })],
    MarkNodeOffline: ({ node_id, fence, at, remove_after_seconds }) => [
      NodeWentOffline.make({ node_id, fence, remove_at: later(at, remove_after_seconds) }),
    ],
    ReviveNode: ({ node_id }, context) =>
      find(context, node_id)?.state === "active" ? [] : [NodeRevived.make({ node_id })],
    RemoveNode: ({ node_id, remove_at }, context) => {
      const member = find(context, node_id)
      if (member !== undefined && member.remove_at !== remove_at) return []
      return [NodeRemoved.make({ node_id, reason: "offline_too_long", at: remove_at })]
    },
  },
  reject,
  timers: ({ context }) =>
    context.nodes.flatMap(({ node_id, remove_at }) =>
      remove_at === undefined
        ? []
        : [
            {
              name: `remove-${node_id}`,
              due: remove_at,
              command: RemoveNode.make({ node_id, remove_at }),
            },
          ],
    ),
})

/** The cluster after one of its commits. */
export const clusterAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(
    stateAfterCommit(log, Cluster, recorded),
    // The decider's state is a snapshot of this file's machine.
    (state) => state.context as ClusterContext,
  )

/** Loads the cluster from the log; undefined before its first node. */
export const loadCluster = Effect.fnUntraced(function* (log: Log["Service"], name: string) {
  const last = yield* log.load(`${Cluster.name}.${name}`)
  return last && (yield* clusterAfter(log, last))
})
