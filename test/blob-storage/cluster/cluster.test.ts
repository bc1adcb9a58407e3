import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Stream } from "effect"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import {
  type ClusterEvent,
  NodeChanged,
  NodeJoined,
  NodeRemoved,
  RingConfigured,
} from "#events/blob-storage/cluster.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { ConfirmLeave, nodes_max, RemoveNode, ReviveNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import {
  a,
  activated,
  at,
  b,
  changed,
  configured,
  join,
  joined,
  leave,
  leaving,
  left,
  mark,
  member,
  offline,
  one,
  remove_at,
  removed,
  revived,
  where,
} from "../../world/blob-storage/cluster-events.ts"
import { given } from "../../world/given.ts"

const cluster = given(Cluster)

describe("joining", () => {
  it("forms a cluster with its first node, by two events of the node", () =>
    cluster()
      .when(join(a))
      .thenEvents(...one))
  it("adds a node", () =>
    cluster(...one)
      .when(join(b))
      .thenEvents(...member(b)))
  it("again changes nothing", () =>
    cluster(...one)
      .when(join(a))
      .thenEvents())
  it("again changes the address", () =>
    cluster(...one)
      .when(join(a, { address: "10.0.0.2:9797" }))
      .thenEvents(
        NodeChanged.make({ node_id: a, ...where, address: "10.0.0.2:9797", weight_percent: 100 }),
      ))
  it("again changes the capacity and its weight", () =>
    cluster(...one)
      .when(join(a, { capacity_bytes: "2000" }))
      .thenEvents(changed(a, "2000", 200)))
  it("again brings an offline node back", () =>
    cluster(...one, offline(a))
      .when(join(a))
      .thenEvents(revived(a)))
  it("again changes the capacity and brings the node back in one commit", () =>
    cluster(...one, offline(a))
      .when(join(a, { capacity_bytes: "2000" }))
      .thenEvents(changed(a, "2000", 200), revived(a)))
  it("again leaves a leaving node leaving", () =>
    cluster(...one, leaving(a))
      .when(join(a))
      .thenEvents())
  it("is possible for a node that had left", () =>
    cluster(...one, leaving(a), left(a))
      .when(join(a))
      .thenEvents(...member(a)))
  it("is possible for a node that was removed", () =>
    cluster(...one, removed(a))
      .when(join(a))
      .thenEvents(...member(a)))
  it("with another number of points draws the ring again, and keeps the unit", () =>
    cluster(...one)
      .when(join(b, { vnodes_per_node: 256, capacity_bytes: "500" }))
      .thenEvents(
        RingConfigured.make({ vnodes_per_node: 256, capacity_unit_bytes: "1000" }),
        NodeJoined.make({ node_id: b, ...where, capacity_bytes: "500", weight_percent: 50 }),
        activated(b),
      ))
  it("without capacity first leaves the unit at 1 TiB", () =>
    cluster()
      .when(join(a, { capacity_bytes: "0" }))
      .thenEvents(
        RingConfigured.make({ vnodes_per_node: 128, capacity_unit_bytes: String(2 ** 40) }),
        NodeJoined.make({ node_id: a, ...where, capacity_bytes: "0", weight_percent: 0 }),
        activated(a),
      ))
  it("is refused when the cluster is full", () => {
    const full = Array.from({ length: nodes_max }, (_, i) => member(NodeId.make(`n-${i}`))).flat()
    cluster(configured, ...full)
      .when(join(a))
      .thenRejected("RESOURCE_EXHAUSTED")
    cluster(configured, ...full.slice(2))
      .when(join(a))
      .thenEvents(...member(a))
    cluster(configured, ...full)
      .when(join(NodeId.make("n-0")))
      .thenEvents()
  })
})

describe("leaving", () => {
  it("at once removes an active node", () =>
    cluster(...one)
      .when(leave(a, false))
      .thenEvents(removed(a)))
  it("at once removes an offline node", () =>
    cluster(...one, offline(a))
      .when(leave(a, false))
      .thenEvents(removed(a)))
  it("at once removes a leaving node", () =>
    cluster(...one, leaving(a))
      .when(leave(a, false))
      .thenEvents(removed(a)))
  it("gracefully begins for an active node", () =>
    cluster(...one)
      .when(leave(a, true))
      .thenEvents(leaving(a)))
  it("gracefully begins for an offline node", () =>
    cluster(...one, offline(a))
      .when(leave(a, true))
      .thenEvents(leaving(a)))
  it("gracefully twice is the same leave", () =>
    cluster(...one, leaving(a))
      .when(leave(a, true))
      .thenEvents())
  it("gracefully is refused while joining", () =>
    cluster(configured, joined(a)).when(leave(a, true)).thenRejected("FAILED_PRECONDITION"))
  it("is refused for a node that is no member, either way", () => {
    cluster(...one)
      .when(leave(b, true))
      .thenRejected("NOT_FOUND")
    cluster(...one)
      .when(leave(b, false))
      .thenRejected("NOT_FOUND")
    cluster().when(leave(a, true)).thenRejected("NOT_FOUND")
  })
  it("ends when nothing has to move any more", () =>
    cluster(...one, leaving(a))
      .when(ConfirmLeave.make({ node_id: a }))
      .thenEvents(left(a)))
  it("does not end before it began", () => {
    const confirm = ConfirmLeave.make({ node_id: a })
    cluster(...one)
      .when(confirm)
      .thenRejected("FAILED_PRECONDITION")
    cluster(...one, offline(a))
      .when(confirm)
      .thenRejected("FAILED_PRECONDITION")
    cluster(...one, leaving(a), left(a))
      .when(confirm)
      .thenRejected("NOT_FOUND")
  })
})

describe("silence", () => {
  it("makes an active node offline, to be removed an hour later", () =>
    cluster(...one)
      .when(mark(a, 7))
      .thenEvents(offline(a)))
  it("is not reported by a replaced watchdog", () => {
    const seen = [...one, offline(a), revived(a)]
    cluster(...seen)
      .when(mark(a, 6))
      .thenRejected("ABORTED")
    cluster(...seen)
      .when(mark(a, 7))
      .thenEvents(offline(a))
    cluster(...seen)
      .when(mark(a, 8))
      .thenEvents(offline(a, 8))
  })
  it("does not change an offline, a leaving or an unknown node", () => {
    cluster(...one, offline(a))
      .when(mark(a, 7))
      .thenRejected("FAILED_PRECONDITION")
    cluster(...one, leaving(a))
      .when(mark(a, 7))
      .thenRejected("FAILED_PRECONDITION")
    cluster(...one)
      .when(mark(b, 7))
      .thenRejected("NOT_FOUND")
  })
  it("ends when the node is heard", () => {
    const revive = ReviveNode.make({ node_id: a })
    cluster(...one, offline(a))
      .when(revive)
      .thenEvents(revived(a))
    cluster(...one)
      .when(revive)
      .thenEvents()
    cluster(...one, leaving(a))
      .when(revive)
      .thenRejected("FAILED_PRECONDITION")
    cluster(...one)
      .when(ReviveNode.make({ node_id: b }))
      .thenRejected("NOT_FOUND")
  })
  it("for too long removes the node, and only when it lasted", () => {
    const remove = RemoveNode.make({ node_id: a, remove_at })
    const expired = NodeRemoved.make({ node_id: a, reason: "offline_too_long", at: remove_at })
    cluster(...one, offline(a))
      .when(remove)
      .thenEvents(expired)
    cluster(...one, offline(a), revived(a))
      .when(remove)
      .thenEvents()
    const later = RemoveNode.make({ node_id: a, remove_at: "2026-11-20T13:00:01.000Z" })
    cluster(...one, offline(a))
      .when(later)
      .thenEvents()
    cluster(...one, removed(a))
      .when(remove)
      .thenRejected("NOT_FOUND")
  })
  it("asks to be removed at that time for as long as it lasts", () => {
    const timersAfter = (...events: ReadonlyArray<ClusterEvent>) =>
      Cluster.timers(events.reduce(Cluster.evolve, Cluster.initialState))
    assert.deepEqual(timersAfter(...one, ...member(b), offline(a)), [
      {
        name: "remove-node-a",
        due: remove_at,
        command: RemoveNode.make({ node_id: a, remove_at }),
      },
    ])
    assert.deepEqual(timersAfter(...one, offline(a), revived(a)), [])
    assert.deepEqual(timersAfter(...one, offline(a), leaving(a)), [])
    assert.deepEqual(timersAfter(...one, offline(a), removed(a)), [])
  })
})

describe("the ring's version", () => {
  const version = (...events: ReadonlyArray<ClusterEvent>) =>
    events.reduce(Cluster.evolve, Cluster.initialState).context.ring_version
  const cases: ReadonlyArray<readonly [string, number, ReadonlyArray<ClusterEvent>]> = [
    ["is 0 before the first node", 0, [configured]],
    ["stays while a node is joining", 0, [configured, joined(a)]],
    ["rises when a node is active", 1, one],
    ["rises when a node goes offline", 2, [...one, offline(a)]],
    ["rises when it is back", 3, [...one, offline(a), revived(a)]],
    ["rises when an active node begins to leave", 2, [...one, leaving(a)]],
    ["stays when an offline node begins to leave", 2, [...one, offline(a), leaving(a)]],
    ["stays when a leaving node has left", 2, [...one, leaving(a), left(a)]],
    ["rises when an active node is removed", 2, [...one, removed(a)]],
    ["stays when an offline node is removed", 2, [...one, offline(a), removed(a)]],
    ["rises with a new weight", 2, [...one, changed(a, "2000", 200)]],
    ["stays with the same weight", 1, [...one, changed(a, "1010", 100)]],
    ["stays with a weight off the ring", 2, [...one, offline(a), changed(a, "2000", 200)]],
    ["rises with other points", 2, [...one, { ...configured, vnodes_per_node: 64 }]],
    [
      "stays with other points and no node",
      0,
      [configured, { ...configured, vnodes_per_node: 64 }],
    ],
  ]
  for (const [name, expected, events] of cases) {
    it(name, () => assert.equal(version(...events), expected))
  }

  /** By how much these moves raise the ring's version; three nodes are active at first. */
  const movedTo = (...moves: ReadonlyArray<readonly [NodeId, string]>) => {
    const nodes = [a, b, NodeId.make("c")]
    const addresses = ["one:1", "one:2", "two:1"]
    const began = nodes.flatMap((node_id, at) => [
      { ...joined(node_id), address: addresses[at] ?? "" },
      activated(node_id),
    ])
    const after = moves.map(([node_id, address]) => ({ ...changed(node_id, "1010", 100), address }))
    return version(configured, ...began, ...after) - version(configured, ...began)
  }

  it("rises when a node goes to another's host, or away from it", () => {
    assert.equal(movedTo([b, "two:2"]), 1)
    assert.equal(movedTo([b, "three:2"]), 1)
    assert.equal(movedTo([b, "two:2"], [b, "one:2"]), 2)
  })

  it("stays with another port, and where the same nodes share a host as before", () => {
    assert.equal(movedTo([b, "one:9"], [a, "ONE:8"]), 0)
    assert.equal(movedTo([NodeId.make("c"), "elsewhere:1"]), 0)
  })
})

describe("a cluster in the log", () => {
  const app = Layer.provideMerge(host, logMemory)
  const send = Effect.fnUntraced(function* (command: Parameters<typeof Cluster.decide>[1]) {
    const origin = { command_id: crypto.randomUUID(), actor: "test", at }
    return yield* (yield* Commands).send(origin, address(Cluster, "almanac", command))
  })

  it.effect("is one commit for each command that changes it", () =>
    Effect.gen(function* () {
      yield* send(join(a))
      yield* send(join(b))
      yield* send(join(b))
      yield* send(leave(a, true))
      const log = yield* Log
      const commits = yield* Stream.runCollect(log.read("blob-storage.cluster.almanac"))
      assert.deepEqual(
        commits.map(({ commit }) => commit.events.map(({ type }) => type)),
        [
          ["RingConfigured", "NodeJoined", "NodeActivated"],
          ["NodeJoined", "NodeActivated"],
          ["NodeLeaveStarted"],
        ],
      )
      const refused = yield* Effect.result(send(ConfirmLeave.make({ node_id: b })))
      assert.isTrue(Result.isFailure(refused))
    }).pipe(Effect.provide(app)),
  )
})
