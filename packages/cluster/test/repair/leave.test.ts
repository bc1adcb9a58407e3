/** A leaving node moves its copies before it reports completion. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { hour_s, makeRepairWorld, type RepairWorld } from "./world.ts"

const four = ["a", "b", "c", "d"]
const six = ["a", "b", "c", "d", "e", "f"]
const origin = { actor: "test", request_id: "", correlation_id: "" }

const leave = (cluster: RepairWorld, name: string, names: ReadonlyArray<string>) =>
  cluster.setRing({ active: names.filter((other) => other !== name), leaving: [name] })

const isDone = async (cluster: RepairWorld, name: string) => {
  const { engine, repairs } = cluster.node(name)
  const { blob_count } = await engine.usage()
  return blob_count === 0 && repairs.progress().pending_migrations === 0
}

describe("a graceful leave", () => {
  it("moves all copies at once, recent or old, and then reports completion", async () => {
    const cluster = makeRepairWorld(four)
    const blobs = Array.from({ length: 30 }, (_, n) =>
      cluster.blob(`blob ${n}`, n % 2 ? "REPLICATION_POLICY_NONE" : "REPLICATION_POLICY_REPLICA2"),
    )
    for (const blob of blobs) await cluster.give("d", blob)
    for (const name of four) cluster.node(name).repairs.start()
    await cluster.sleep(1)
    leave(cluster, "d", four)
    assert.equal(cluster.node("d").repairs.progress().pending_migrations > 0, true)
    await cluster.sleep(60)
    assert.equal(await isDone(cluster, "d"), true)
    for (const blob of blobs) {
      const wanted = blob.policy === "REPLICATION_POLICY_NONE" ? 1 : 2
      const owners = cluster.ownersOf(blob, wanted)
      assert.deepEqual(await cluster.holders(blob), [...owners].sort())
    }
    const { bytes_moved, repairs } = cluster.node("d").repairs.progress()
    assert.ok(bytes_moved >= blobs.reduce((sum, { bytes }) => sum + bytes.length, 0))
    assert.equal(repairs, 0, "moved, not repaired")
    for (const name of four) await cluster.world.until(cluster.node(name).repairs.stop())
  })
  it("is not complete before a whole sweep found nothing, even on an empty node", async () => {
    const cluster = makeRepairWorld(four)
    leave(cluster, "d", four)
    assert.equal(await isDone(cluster, "d"), false)
    await cluster.sweep("d")
    assert.equal(await isDone(cluster, "d"), true)
  })
  it("is not complete while an owner refuses a copy", async () => {
    const cluster = makeRepairWorld(four)
    const blob = cluster.blob("stuck", "REPLICATION_POLICY_REPLICA2")
    await cluster.give("d", blob)
    leave(cluster, "d", four)
    const [owner = ""] = cluster.ownersOf(blob, 1)
    cluster.node(owner).engine.limit(0)
    for (let n = 0; n < 3; n++) await cluster.sweep("d")
    assert.equal(await isDone(cluster, "d"), false)
    assert.ok((await cluster.holders(blob)).includes("d"))
    cluster.node(owner).engine.limit(2 ** 40)
    for (let n = 0; n < 3; n++) await cluster.sweep("d")
    assert.equal(await isDone(cluster, "d"), true)
  })
  it("completes if six other nodes can have the shards, even if one is missing", async () => {
    const cluster = makeRepairWorld(six)
    const blob = cluster.blob("shards", "REPLICATION_POLICY_EC42")
    for (const [index, name] of cluster.ownersOf(blob, 6).entries()) {
      await cluster.give(name, blob, { index, data_shards: 4 })
    }
    await cluster.sleep(hour_s)
    leave(cluster, "c", six)
    for (let n = 0; n < 3; n++) await cluster.sweep("c")
    assert.equal(await isDone(cluster, "c"), true)
    assert.equal((await cluster.shards(blob)).size, 5)
  })
  it("stays if fewer shards than a read needs would be left", async () => {
    const cluster = makeRepairWorld(six)
    const blob = cluster.blob("too few", "REPLICATION_POLICY_EC42")
    const active = six.filter((name) => name !== "c").slice(0, 3)
    cluster.setRing({ active, leaving: ["c"] })
    for (const [index, name] of [...active, "c"].entries()) {
      await cluster.give(name, blob, { index, data_shards: 4 })
    }
    await cluster.sleep(hour_s)
    for (let n = 0; n < 4; n++) await cluster.sweep("c")
    assert.equal(await isDone(cluster, "c"), false)
    assert.equal((await cluster.shards(blob)).size, 4)
  })
  it("sends a copy to the next node if its owner deleted it; keeps it if all did", async () => {
    const cluster = makeRepairWorld(four)
    const blob = cluster.blob("deleted", "REPLICATION_POLICY_NONE")
    await cluster.give("d", blob)
    leave(cluster, "d", four)
    const [owner = "", next = "", last = ""] = cluster.ownersOf(blob, 3)
    for (const name of [owner, next, last]) {
      await cluster.node(name).engine.delete(blob.id, origin, cluster.world.now())
    }
    for (let n = 0; n < 3; n++) await cluster.sweep("d")
    assert.deepEqual(await cluster.holders(blob), ["d"])
    assert.equal(await isDone(cluster, "d"), false)
    // Put again, it is later than all deletions: its owner accepts it, and this copy is not needed.
    await cluster.give(last, blob, undefined, cluster.world.now() + 1n)
    for (let n = 0; n < 3; n++) await cluster.sweep("d")
    assert.deepEqual(await cluster.holders(blob), [owner, last].sort())
    assert.equal(await isDone(cluster, "d"), true)
  })
  it("completes while others keep deleting blobs", async () => {
    const cluster = makeRepairWorld(four)
    for (const name of four) cluster.node(name).repairs.start()
    leave(cluster, "d", four)
    let deleted = 0
    for (let n = 0; n < 40 && !(await isDone(cluster, "d")); n++) {
      const { id } = cluster.blob(`deleted ${n}`, "REPLICATION_POLICY_NONE")
      await cluster.node("d").engine.deleteClusterWide(id, origin, cluster.world.now())
      deleted += 1
      await cluster.sleep(1)
    }
    assert.ok(deleted < 20, `${deleted} seconds`)
    for (const name of four) await cluster.world.until(cluster.node(name).repairs.stop())
  })
  it("sends deletions to the other nodes before it completes", async () => {
    const cluster = makeRepairWorld(four)
    const blob = cluster.blob("reported", "REPLICATION_POLICY_NONE")
    await cluster.node("d").engine.deleteClusterWide(blob.id, origin, cluster.world.now())
    leave(cluster, "d", four)
    cluster.network.block("d", "a")
    await cluster.sweep("d")
    assert.equal(await isDone(cluster, "d"), false)
    cluster.network.heal()
    for (let n = 0; n < 2; n++) await cluster.sweep("d")
    assert.equal(await isDone(cluster, "d"), true)
    for (const name of four) {
      const [copy] = await cluster.node(name).engine.copiesOf([blob.id])
      assert.equal(copy?.kind, "tombstone")
    }
  })
})
