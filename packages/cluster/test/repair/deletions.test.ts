/** Cluster-wide deletions reach nodes that were offline, regardless of clock skew. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { Deletion, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { missingDeletions } from "../../repair/deletions.ts"
import { makeRepairWorld, type RepairWorld } from "./world.ts"

const names = ["a", "b", "c", "d"]
const origin = { actor: "test", request_id: "", correlation_id: "" }
const settle_s = 11

/** A blob on all nodes, deleted on all but the last one, which is offline. */
const deleted = async (cluster: RepairWorld) => {
  const blob = cluster.blob("deleted", "REPLICATION_POLICY_REPLICA3")
  const created_at = cluster.world.now()
  for (const name of names) await cluster.give(name, blob, undefined, created_at)
  await cluster.sleep(settle_s)
  for (const name of names.slice(0, 3)) {
    await cluster.node(name).engine.deleteClusterWide(blob.id, origin, cluster.world.now())
  }
  return blob
}

describe("cluster-wide deletions", () => {
  it("reach a node that was offline with the first sweep of any other", async () => {
    const cluster = makeRepairWorld(names)
    const blob = await deleted(cluster)
    await cluster.sweep("b")
    assert.deepEqual(await cluster.holders(blob), [])
    const [copy] = await cluster.node("d").engine.copiesOf([blob.id])
    assert.equal(copy?.kind === "tombstone" && copy.is_cluster_wide, true)
  })
  it("are found by the returning node before it sends its copy to any other", async () => {
    const cluster = makeRepairWorld(names)
    const blob = await deleted(cluster)
    await cluster.sweep("d")
    assert.deepEqual(await cluster.holders(blob), [])
  })
  it("reach a node that never had the blob, so that no old disk brings it back", async () => {
    const cluster = makeRepairWorld(names)
    const blob = cluster.blob("never there", "REPLICATION_POLICY_NONE")
    await cluster.node("a").engine.deleteClusterWide(blob.id, origin, cluster.world.now())
    await cluster.sweep("a")
    await cluster.sleep(1)
    const old = cluster.world.now() - 5_000_000_000n
    await assert.rejects(cluster.give("c", blob, undefined, old))
  })
  it("are sent to one node per sweep once the ring is stable", async () => {
    const cluster = makeRepairWorld(names)
    await cluster.sweep("a")
    const blob = cluster.blob("later", "REPLICATION_POLICY_NONE")
    await cluster.node("a").engine.deleteClusterWide(blob.id, origin, cluster.world.now())
    for (const acts of [1, 1, 1, 0]) assert.equal((await cluster.sweep("a")).actions, acts)
  })
  it("do not affect a later put, which reaches the other nodes again", async () => {
    const cluster = makeRepairWorld(names)
    const blob = await deleted(cluster)
    await cluster.sleep(1)
    await cluster.node("d").engine.deleteClusterWide(blob.id, origin, cluster.world.now())
    await cluster.sleep(1)
    const [owner = ""] = cluster.ownersOf(blob, 3)
    await cluster.give(owner, blob, undefined, cluster.world.now())
    await cluster.sleep(settle_s)
    await cluster.sweepAll(2)
    assert.deepEqual(await cluster.holders(blob), [...cluster.ownersOf(blob, 3)].sort())
  })
  it("tolerate clock skew: a put after a deletion by a faster clock stays", async () => {
    const skew_ms = { a: 60_000, c: -60_000 }
    const cluster = makeRepairWorld(names, { skew_ms })
    const blob = cluster.blob("skewed", "REPLICATION_POLICY_REPLICA3")
    const { a, c } = { a: cluster.node("a"), c: cluster.node("c") }
    await cluster.give("c", blob, undefined, c.now())
    await a.engine.deleteClusterWide(blob.id, origin, a.now())
    await cluster.sweep("a")
    assert.deepEqual(await cluster.holders(blob), [])
    await cluster.sleep(1)
    const order = {
      labels: {},
      policy: blob.policy,
      origin,
      expected_id: undefined,
      if_none_match: false,
    }
    // By c's clock this put is two minutes older than the deletion that it received.
    await c.engine.put(order, [blob.bytes], c.now())
    await cluster.sleep(settle_s)
    await cluster.sweepAll(3)
    const owners = cluster.ownersOf(blob, 3)
    assert.deepEqual(
      (await cluster.holders(blob)).filter((name) => owners.includes(name)),
      [...owners].sort(),
    )
  })
  it("are sent with a later local deletion, which another node covers", async () => {
    const cluster = makeRepairWorld(names)
    const blob = cluster.blob("both kinds", "REPLICATION_POLICY_REPLICA2")
    const [first = "", second = "", third = ""] = cluster.ownersOf(blob, 3)
    const { engine } = cluster.node(second)
    await engine.deleteClusterWide(blob.id, origin, cluster.world.now())
    await cluster.sleep(1)
    await cluster.give(first, blob, undefined, cluster.world.now())
    await cluster.sleep(settle_s)
    await engine.delete(blob.id, origin, cluster.world.now())
    await cluster.sweep(first)
    assert.deepEqual(await cluster.holders(blob), [first, third].sort())
    assert.equal((await cluster.sweep(first)).missing, 0)
    // After another put elsewhere it has two copies, and the older one counts.
    await cluster.sleep(1)
    const { stored_at = 0n } = (await cluster.copyOf(third, blob)) ?? {}
    await cluster.node(third).engine.release(blob.id, stored_at, cluster.world.now())
    await cluster.give(third, blob, undefined, cluster.world.now())
    await cluster.sleep(settle_s)
    await cluster.sweep(first)
    await cluster.sweep(third)
    assert.deepEqual(await cluster.holders(blob), [first, third].sort())
  })
  it("remove an older copy that has not been used since", async () => {
    const cluster = makeRepairWorld(names)
    const blob = cluster.blob("old disk", "REPLICATION_POLICY_NONE")
    const [owner = "", other = "", third = ""] = cluster.ownersOf(blob, 3)
    // The owner was offline during the deletion, and another node has stored the blob again since.
    await cluster.give(owner, blob)
    await cluster.sleep(settle_s)
    await cluster.node(third).engine.deleteClusterWide(blob.id, origin, cluster.world.now())
    await cluster.sleep(settle_s)
    await cluster.give(other, blob, undefined, cluster.world.now())
    await cluster.sleep(2 * 3600)
    await cluster.sweep(other)
    assert.equal((await cluster.holders(blob)).includes(other), true)
    await cluster.sweep(third)
    await cluster.sweepAll(2)
    assert.deepEqual(await cluster.holders(blob), [owner])
    const [copy] = await cluster.node(owner).engine.copiesOf([blob.id])
    assert.ok(
      copy?.kind === "whole" && copy.created_at > cluster.world.now() - 3n * 3600n * 10n ** 9n,
    )
  })
  it("are sent if they are unknown, older, or local on the other node", () => {
    const cluster = makeRepairWorld(names)
    const { id, checksum, policy } = cluster.blob("table", "REPLICATION_POLICY_NONE")
    const wide: Deletion = { kind: "tombstone", id, deleted_at: 10n, is_cluster_wide: true }
    const held = (put_at: bigint): HeldCopy => ({
      kind: "whole",
      id,
      size: 1,
      checksum,
      policy,
      shard: undefined,
      created_at: 1n,
      put_at,
      stored_at: 99n,
    })
    for (const [theirs, is_sent] of [
      [undefined, true],
      [{ ...wide, deleted_at: 9n }, true],
      [{ ...wide, deleted_at: 11n, is_cluster_wide: false }, true],
      [wide, false],
      [{ ...wide, deleted_at: 11n }, false],
      [held(9n), true],
      [held(10n), true],
      [held(11n), false],
    ] as const) {
      assert.equal(
        missingDeletions([wide], [theirs]).length,
        is_sent ? 1 : 0,
        JSON.stringify(is_sent),
      )
    }
  })
})
