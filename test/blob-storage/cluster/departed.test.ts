/** Nodes removed with their disks: the time after which every put is on current members only. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { allOnlineSince, Cluster, type ClusterContext } from "#actors/blob-storage/cluster.ts"
import { type ClusterEvent, NodeRemoved } from "#events/blob-storage/cluster.ts"
import { snapshot_bytes_max } from "#events/log.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import {
  a,
  activated,
  b,
  configured,
  joined,
  leaving,
  left,
  offline,
  revived,
} from "../../world/blob-storage/cluster-events.ts"

const both = [configured, joined(a), activated(a), joined(b), activated(b)]
const noon = "2026-11-22T12:00:00.000Z"
const evening = "2026-11-22T18:00:00.000Z"
const nanos = (at: string) => BigInt(Date.parse(at)) * 1_000_000n
const removedAt = (node_id: NodeId, at: string) =>
  NodeRemoved.make({ node_id, reason: "left_at_once", at })

const contextAfter = (...events: ReadonlyArray<ClusterEvent>) => {
  const state = events.reduce(Cluster.evolve, Cluster.initialState)
  // The decider's state is a snapshot of the cluster's state machine.
  return state.context as ClusterContext
}
const since = (...events: ReadonlyArray<ClusterEvent>) =>
  allOnlineSince(contextAfter(...both, ...events))

describe("a cluster that is whole", () => {
  it("is so from the beginning, and not while a node is offline", () => {
    assert.equal(since(), 0n)
    assert.equal(since(offline(a)), undefined)
    assert.equal(since(offline(a), revived(a)), 0n)
  })
  it("is so while a node leaves, which is still asked, and when it has left", () => {
    assert.equal(since(leaving(a)), 0n)
    assert.equal(since(leaving(a), left(a)), 0n)
  })
  it("is so since a node was removed with what it had, until that is back", () => {
    assert.equal(since(removedAt(a, noon)), nanos(noon))
    assert.equal(since(removedAt(b, evening), removedAt(a, noon)), nanos(evening))
    assert.equal(since(removedAt(a, noon), joined(a)), undefined)
    assert.equal(since(removedAt(a, noon), joined(a), activated(a)), 0n)
  })
  it("treats a removal without a time, of an older version, as older than every shard", () => {
    assert.equal(since(NodeRemoved.make({ node_id: a, reason: "left_at_once" })), 0n)
  })
  it("forgets who went long ago, but not when", () => {
    const others = Array.from({ length: 9 }, (_, n) => NodeId.make(`other-${n}`))
    const gone = others.flatMap((node_id, n) => [
      joined(node_id),
      activated(node_id),
      removedAt(node_id, n === 0 ? evening : noon),
    ])
    const [first = a] = others
    assert.equal(since(...gone), nanos(evening))
    assert.equal(since(...gone, joined(first), activated(first)), nanos(evening))
    assert.ok(contextAfter(...both, ...gone).departed.length < others.length)
  })
  it("is part of the snapshot", () => {
    const state = [...both, removedAt(a, noon)].reduce(Cluster.evolve, Cluster.initialState)
    const text = JSON.stringify(Cluster.save(state))
    assert.ok(text.length < snapshot_bytes_max)
    assert.deepEqual(Cluster.restore(JSON.parse(text))?.context, state.context)
  })
})
