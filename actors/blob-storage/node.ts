/**
 * A node's life: joining → active ⇄ offline; active and offline → leaving → left; any → removed.
 *
 * It is no aggregate of its own: the cluster asks this chart whether something can happen to one
 * of its nodes, and which state it leads to.
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

type Life = ReturnType<typeof machine.resolveState>

const lives = new Map<NodeState | undefined, Life>(
  ([undefined, "joining", "active", "leaving", "offline"] as const).map((state) => [
    state,
    machine.resolveState({ value: state ?? "absent" }),
  ]),
)

// The map holds every state that a member can have, and that of no member.
const life = (state: NodeState | undefined) => lives.get(state) as Life

/** Whether the event can happen to a node in this state; undefined is one that is no member. */
export const canHappen = (state: NodeState | undefined, event: NodeEvent) => life(state).can(event)

/** The state after the event; undefined when the node is a member no more. */
export const stateAfter = (
  state: NodeState | undefined,
  event: NodeEvent,
): NodeState | undefined => {
  const [next] = transition(machine, life(state), event)
  // What is not final is a state that the interface names too, but for the one before birth.
  return next.status === "done" || next.value === "absent" ? undefined : (next.value as NodeState)
}
