/**
 * A node: joining → active ⇄ offline; active and offline → leaving → left; any → removed.
 *
 * It is not an aggregate. The cluster uses this chart to check whether an event can happen to one
 * of its nodes, and for the resulting state.
 *
 * Source: document 1 §3 States and transitions; DECISIONS, document 1, join, heartbeats.
 */
import { setup, transition } from "xstate"
import type { NodeEvent } from "#events/blob-storage/cluster.ts"
import type { NodeState } from "#schemas/blob-storage/node.ts"

export const machine = setup({ types: { events: {} as NodeEvent } }).createMachine({
  id: "blob-storage.node",
  initial: "absent",
  states: {
    absent: { on: { NodeJoined: "joining" } },
    joining: {
      on: { NodeChanged: "joining", NodeActivated: "active", NodeRemoved: "removed" },
    },
    active: {
      on: {
        NodeChanged: "active",
        NodeWentOffline: "offline",
        NodeLeaveStarted: "leaving",
        NodeRemoved: "removed",
      },
    },
    offline: {
      on: {
        NodeChanged: "offline",
        NodeRevived: "active",
        NodeLeaveStarted: "leaving",
        NodeRemoved: "removed",
      },
    },
    leaving: { on: { NodeChanged: "leaving", NodeLeft: "left", NodeRemoved: "removed" } },
    left: { type: "final" },
    removed: { type: "final" },
  },
})

type NodeSnapshot = ReturnType<typeof machine.resolveState>

const snapshots = new Map<NodeState | undefined, NodeSnapshot>(
  ([undefined, "joining", "active", "leaving", "offline"] as const).map((state) => [
    state,
    machine.resolveState({ value: state ?? "absent" }),
  ]),
)

// The map has every state of a member, and the state of a node that is not a member.
const snapshotOf = (state: NodeState | undefined) => snapshots.get(state) as NodeSnapshot

/** Whether the event can happen in this state; undefined: the node is not a member. */
export const canHappen = (state: NodeState | undefined, event: NodeEvent) =>
  snapshotOf(state).can(event)

/** The state after the event; undefined if the node is no longer a member. */
export const stateAfter = (
  state: NodeState | undefined,
  event: NodeEvent,
): NodeState | undefined => {
  const [next] = transition(machine, snapshotOf(state), event)
  // Every non-final state except the initial one is also a NodeState.
  return next.status === "done" || next.value === "absent" ? undefined : (next.value as NodeState)
}
