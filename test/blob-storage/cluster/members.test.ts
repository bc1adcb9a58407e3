import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Cluster, type ClusterContext, type Member } from "#actors/blob-storage/cluster.ts"
import { isUpToDate, makeMembersCache, membership } from "#actors/blob-storage/members.ts"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { type ClusterCommand, JoinNode, LeaveNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"

const member = (node_id: string, state: Member["state"], port = 1): Member => ({
  node_id: NodeId.make(node_id),
  address: `10.0.0.1:${port}`,
  state,
  capacity_bytes: "100",
  weight_percent: 100,
})

const cluster = (ring_version: number, ...nodes: ReadonlyArray<Member>): ClusterContext => ({
  ring_version,
  vnodes_per_node: 8,
  capacity_unit_bytes: "100",
  fence: 0,
  nodes,
  departed: [],
  departed_before: "",
})

describe("the members that a node knows", () => {
  it("are empty until it learns of one, and then those that are active or leaving", () => {
    const { members, isNode, learn } = makeMembersCache("a")
    assert.deepEqual([members().active, members().leaving, members().is_leaving], [[], [], false])
    assert.deepEqual(members().placement.ownersOf(0, 3), [])
    learn(cluster(3, member("a", "active"), member("b", "leaving", 2), member("c", "offline")), 1)
    const { active, leaving, is_leaving, ring_version, node_id } = members()
    assert.deepEqual(active, [{ node_id: "a", address: "10.0.0.1:1" }])
    assert.deepEqual(leaving, [{ node_id: "b", address: "10.0.0.1:2" }])
    assert.deepEqual([is_leaving, ring_version, node_id], [false, 3, "a"])
    assert.deepEqual(["a", "b", "c", "d"].map(isNode), [true, true, true, false])
  })

  it("have one placement for each version of the ring, drawn of the active ones alone", () => {
    const { members, learn } = makeMembersCache("a")
    learn(cluster(1, member("a", "active"), member("b", "active"), member("c", "leaving")), 1)
    const { placement } = members()
    assert.equal(members().placement, placement)
    assert.deepEqual([...placement.ownersOf(0, 9)].sort(), ["a", "b"])
    learn(cluster(1, member("a", "active"), member("b", "active", 7), member("c", "leaving")), 2)
    assert.equal(members().placement, placement)
    assert.equal(members().active[1]?.address, "10.0.0.1:7")
    learn(cluster(2, member("a", "active")), 3)
    assert.deepEqual(members().placement.ownersOf(0, 9), ["a"])
  })

  it("say that the node leaves until it is back, also once it has left", () => {
    const { members, learn } = makeMembersCache("a")
    const steps: ReadonlyArray<readonly [ReadonlyArray<Member>, boolean]> = [
      [[member("a", "active")], false],
      [[member("a", "leaving"), member("b", "active")], true],
      [[member("b", "active")], true],
      [[member("a", "active"), member("b", "active")], false],
      [[member("b", "active")], false],
    ]
    for (const [n, [nodes, is_leaving]] of steps.entries()) {
      learn(cluster(n + 1, ...nodes), n + 1)
      assert.equal(members().is_leaving, is_leaving, `step ${n}`)
    }
  })

  it.live("follow the log, from what it has on to what comes", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      let sent = 0
      const send = (command: ClusterCommand) => {
        const origin = { command_id: `c-${sent++}`, actor: "test", at: "2026-11-22T00:00:00Z" }
        return commands.send(origin, address(Cluster, "almanac", command))
      }
      const join = (node_id: string) =>
        send(
          JoinNode.make({
            node_id: NodeId.make(node_id),
            address: "10.0.0.1:1",
            capacity_bytes: "100",
            vnodes_per_node: 8,
          }),
        )
      const { members, learn, position } = makeMembersCache("a")
      const is_newest = isUpToDate(yield* Log, "almanac", { position })
      const names = () => members().active.map(({ node_id }) => node_id)
      const shows = (expected: string) =>
        Effect.suspend(() => Effect.succeed(names().join())).pipe(
          Effect.delay(2),
          Effect.repeat({ until: (found) => found === expected, times: 2000 }),
          Effect.map((found) => assert.equal(found, expected)),
        )
      yield* join("a")
      yield* join("b")
      assert.isFalse(yield* is_newest)
      const following = yield* Effect.forkChild(runProcess(membership("almanac", { learn })))
      yield* shows("a,b")
      yield* join("c")
      yield* shows("a,b,c")
      yield* send(LeaveNode.make({ node_id: NodeId.make("b"), graceful: true }))
      yield* shows("a,c")
      assert.deepEqual(
        members().leaving.map(({ node_id }) => node_id),
        ["b"],
      )
      assert.isTrue(yield* is_newest)
      yield* Fiber.interrupt(following)
      yield* join("d")
      assert.isFalse(yield* is_newest)
    }).pipe(Effect.provide(host.pipe(Layer.provideMerge(logMemory)))),
  )
})
