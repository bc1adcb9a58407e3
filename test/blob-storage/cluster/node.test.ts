import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { canHappen, machine, stateAfter } from "#actors/blob-storage/node.ts"
import {
  NodeActivated,
  NodeChanged,
  type NodeEvent,
  NodeJoined,
  NodeLeaveStarted,
  NodeLeft,
  NodeRemoved,
  NodeRevived,
  NodeWentOffline,
} from "#events/blob-storage/cluster.ts"
import { NodeAddress, NodeId, type NodeState, Uint64Digits } from "#schemas/blob-storage/node.ts"
import { histories } from "../../world/histories.ts"

const node_id = NodeId.make("node-1")
const described = { node_id, address: "h:1", capacity_bytes: "1", weight_percent: 100 }
const remove_at = "2026-11-20T13:00:00.000Z"

const events: ReadonlyArray<NodeEvent> = [
  NodeJoined.make(described),
  NodeActivated.make({ node_id }),
  NodeChanged.make(described),
  NodeWentOffline.make({ node_id, fence: 1, remove_at }),
  NodeRevived.make({ node_id }),
  NodeLeaveStarted.make({ node_id }),
  NodeLeft.make({ node_id }),
  NodeRemoved.make({ node_id, reason: "left_at_once" }),
]

/**
 * Valid transitions: from, event, to. "gone" means no longer a member. Every other pair of state
 * and event is rejected.
 */
const table = [
  "absent NodeJoined joining",
  "joining NodeActivated active",
  "joining NodeChanged joining",
  "joining NodeRemoved gone",
  "active NodeChanged active",
  "active NodeWentOffline offline",
  "active NodeLeaveStarted leaving",
  "active NodeRemoved gone",
  "offline NodeChanged offline",
  "offline NodeRevived active",
  "offline NodeLeaveStarted leaving",
  "offline NodeRemoved gone",
  "leaving NodeChanged leaving",
  "leaving NodeLeft gone",
  "leaving NodeRemoved gone",
]

describe("a node", () => {
  const states: ReadonlyArray<NodeState | undefined> = [
    undefined,
    "joining",
    "active",
    "offline",
    "leaving",
  ]
  for (const from of states) {
    for (const event of events) {
      const line = table.find((line) => line.startsWith(`${from ?? "absent"} ${event.type} `))
      const to = line?.split(" ")[2]
      it(`that is ${from ?? "absent"} ${to ? `is ${to} after` : "refuses"} ${event.type}`, () => {
        assert.equal(canHappen(from, event), to !== undefined)
        if (to !== undefined) assert.equal(stateAfter(from, event) ?? "gone", to)
      })
    }
  }

  it("comes to no other states than these in six events", () => {
    const met = new Set([...histories(machine, events, 6)].map(({ state }) => state.value))
    const known = ["active", "joining", "leaving", "left", "offline", "removed"]
    assert.deepEqual(met, new Set(known))
  })
})

describe("a node's address", () => {
  const is = Schema.is(NodeAddress)
  const right = ["10.0.0.1:9797", "a:1", "blob-0.blob.svc.cluster.local:65535", "[::1]:80"]
  const wrong = [
    "",
    "host",
    ":80",
    "host:",
    "host:0",
    "host:65536",
    "host:123456",
    "http://host:80",
    "ho st:80",
    "host:80/",
    "user@host:80",
    "-host:80",
    "::1:80",
    "[host]:80",
    "host:8o",
    `${"h".repeat(126)}:80`,
  ]
  for (const address of right) it(`may be ${address}`, () => assert.isTrue(is(address)))
  for (const address of wrong) it(`may not be ${address}`, () => assert.isFalse(is(address)))
  it("may have 128 characters", () => assert.isTrue(is(`${"h".repeat(125)}:80`)))
})

describe("a uint64 in the log", () => {
  const is = Schema.is(Uint64Digits)
  it("goes from 0 to 2^64 - 1", () => {
    assert.isTrue(is("0"))
    assert.isTrue(is("18446744073709551615"))
    for (const wrong of ["18446744073709551616", "-1", "01", "", "1e3", "1.0"]) {
      assert.isFalse(is(wrong), wrong)
    }
  })
})
