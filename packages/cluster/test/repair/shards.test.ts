/** The repair of erasure coded blobs: each shard once, on as many nodes as there are shards. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { MadeBlob } from "./blob.ts"
import { shardBytes } from "./blob.ts"
import { hour_s, makeRepairWorld, type RepairWorld } from "./world.ts"

const six = ["a", "b", "c", "d", "e", "f"]
const seven = [...six, "g"]
const ten = [...seven, "h", "i", "j"]
const settle_s = 11

/** Stores the shards on the owners in order, except those in `lost`. */
const spread = async (
  cluster: RepairWorld,
  blob: MadeBlob,
  data_shards: number,
  lost: ReadonlyArray<number> = [],
) => {
  const owners = cluster.ownersOf(blob, data_shards + 2)
  const created_at = cluster.world.now()
  for (const [index, owner] of owners.entries()) {
    if (lost.includes(index)) continue
    await cluster.give(owner, blob, { index, data_shards }, created_at)
  }
  await cluster.sleep(settle_s)
  return owners
}

const indexes = (shards: ReadonlyMap<string, number>) => [...shards.values()].sort((a, b) => a - b)

const all = (total: number) => Array.from({ length: total }, (_, index) => index)

const pairs = (total: number) =>
  all(total).flatMap((one) => all(one).map((other) => [other, one] as const))

/** Asserts that every existing shard has the bytes that the code computes. */
const checkBytes = async (cluster: RepairWorld, blob: MadeBlob, data_shards: number) => {
  for (const [name, index] of await cluster.shards(blob)) {
    const { data } = await cluster.node(name).engine.read(blob.id, {}, cluster.world.now())
    assert.deepEqual(data, shardBytes(blob, { index, data_shards }), `shard ${index} on ${name}`)
  }
}

describe("the repair of shards", () => {
  for (const [policy, data_shards, names] of [
    ["REPLICATION_POLICY_EC42", 4, six],
    ["REPLICATION_POLICY_EC82", 8, ten],
  ] as const) {
    it(`rebuilds any two lost shards of ${policy} on nodes without one`, async () => {
      const total = data_shards + 2
      const cluster = makeRepairWorld(names)
      const made: Array<MadeBlob> = []
      for (const lost of pairs(total)) {
        const blob = cluster.blob(`lost ${lost}`, policy)
        made.push(blob)
        await spread(cluster, blob, data_shards, lost)
      }
      await cluster.sweepAll()
      for (const blob of made) {
        const shards = await cluster.shards(blob)
        assert.deepEqual([...shards.keys()], cluster.ownersOf(blob, total).toSorted())
        assert.deepEqual(indexes(shards), all(total))
        await checkBytes(cluster, blob, data_shards)
      }
    })
  }
  it("lets one node rebuild them, and only the missing ones", async () => {
    const cluster = makeRepairWorld(six)
    const blob = cluster.blob("once", "REPLICATION_POLICY_EC42")
    const owners = await spread(cluster, blob, 4, [1, 4])
    const [first = "", , third = ""] = owners
    assert.equal((await cluster.sweep(third)).actions, 0)
    assert.equal((await cluster.sweep(first)).missing, 0)
    assert.equal(cluster.node(first).repairs.progress().repairs, 2)
    await cluster.sweepAll()
    for (const name of six) {
      const { last_sweep } = cluster.node(name).repairs.progress()
      assert.deepEqual([last_sweep?.actions, last_sweep?.missing], [0, 0])
    }
  })
  it("rebuilds nothing if three are lost, and loses nothing else", async () => {
    const cluster = makeRepairWorld(six)
    cluster.setRing({ all_online_since: undefined })
    const blob = cluster.blob("three", "REPLICATION_POLICY_EC42")
    await spread(cluster, blob, 4, [0, 2, 5])
    await cluster.sleep(2 * hour_s)
    await cluster.sweepAll(3)
    assert.deepEqual(indexes(await cluster.shards(blob)), [1, 3, 4])
    assert.equal(cluster.node("a").repairs.progress().last_sweep?.is_complete, true)
  })
  it("waits for an owner that does not respond, but not forever", async () => {
    const cluster = makeRepairWorld(six)
    const blob = cluster.blob("silent", "REPLICATION_POLICY_EC42")
    const owners = await spread(cluster, blob, 4, [2])
    const [first = "", , , silent = ""] = owners
    cluster.network.block(first, silent)
    for (const acts of [0, 0, 1]) assert.equal((await cluster.sweep(first)).actions, acts)
    cluster.network.heal()
    await cluster.sweepAll(4)
    assert.deepEqual(indexes(await cluster.shards(blob)), all(6))
    await checkBytes(cluster, blob, 4)
  })
  it("moves the shards of a former owner unchanged", async () => {
    const cluster = makeRepairWorld(seven)
    const blob = cluster.blob("moved", "REPLICATION_POLICY_EC42")
    const owners = cluster.ownersOf(blob, 6)
    const [other = ""] = seven.filter((name) => !owners.includes(name))
    const [bare = "", ...others] = owners
    const created_at = cluster.world.now()
    for (const [index, name] of [...others, other].entries()) {
      await cluster.give(name, blob, { index, data_shards: 4 }, created_at)
    }
    await cluster.sleep(settle_s)
    await cluster.sweepAll(2)
    assert.equal((await cluster.shards(blob)).get(bare), 5)
    assert.equal((await cluster.shards(blob)).get(other), 5, "an hour it stays")
    assert.equal(cluster.node(other).repairs.progress().repairs, 0, "no shard was built again")
    await cluster.sleep(hour_s)
    await cluster.sweepAll()
    const shards = await cluster.shards(blob)
    assert.deepEqual([...shards.keys()], [...owners].sort())
    await checkBytes(cluster, blob, 4)
  })
  it("gives one of two owners of the same shard another: an old disk is back", async () => {
    const cluster = makeRepairWorld(seven)
    const blob = cluster.blob("old disk", "REPLICATION_POLICY_EC42")
    const owners = cluster.ownersOf(blob, 6)
    const [other = ""] = seven.filter((name) => !owners.includes(name))
    const created_at = cluster.world.now()
    const held = [0, 1, 2, 3, 4, 2]
    for (const [at, name] of owners.entries()) {
      await cluster.give(name, blob, { index: held[at] ?? 0, data_shards: 4 }, created_at)
    }
    await cluster.give(other, blob, { index: 5, data_shards: 4 }, created_at)
    await cluster.sleep(settle_s)
    await cluster.sweepAll(3)
    await cluster.sleep(hour_s)
    await cluster.sweepAll(2)
    const shards = await cluster.shards(blob)
    assert.deepEqual([...shards.keys()], [...owners].sort())
    assert.deepEqual(indexes(shards), all(6))
    assert.equal(shards.get(owners[2] ?? ""), 2)
    assert.equal(shards.get(owners[5] ?? ""), 5)
  })
  it("discards the shards of a failed put after an hour", async () => {
    const cluster = makeRepairWorld(six)
    for (const name of six) cluster.node(name).repairs.start()
    await cluster.sleep(200)
    const blob = cluster.blob("unfinished", "REPLICATION_POLICY_EC42")
    await spread(cluster, blob, 4, [0, 1, 2])
    await cluster.sleep(hour_s / 2)
    assert.equal((await cluster.shards(blob)).size, 3)
    await cluster.sleep(hour_s)
    assert.equal((await cluster.shards(blob)).size, 0)
    for (const name of six) await cluster.world.until(cluster.node(name).repairs.stop())
  })
  it("keeps such shards if a node that may have the others is or was offline", async () => {
    const cluster = makeRepairWorld(seven)
    const blob = cluster.blob("away", "REPLICATION_POLICY_EC42")
    cluster.setRing({ all_online_since: undefined })
    await spread(cluster, blob, 4, [0, 1, 2])
    await cluster.sleep(3 * hour_s)
    await cluster.sweepAll(2)
    assert.equal((await cluster.shards(blob)).size, 3)
    cluster.setRing({
      all_online_since: cluster.world.now() - 2n * BigInt(hour_s) * 1_000_000_000n,
    })
    await cluster.sweepAll(2)
    assert.equal((await cluster.shards(blob)).size, 3)
    cluster.setRing({ all_online_since: 0n })
    await cluster.sweepAll(2)
    assert.equal((await cluster.shards(blob)).size, 0)
  })
  it("keeps such shards if a node does not respond, or another completes the blob", async () => {
    const cluster = makeRepairWorld(six)
    const blob = cluster.blob("unsure", "REPLICATION_POLICY_EC42")
    const owners = await spread(cluster, blob, 4, [0, 1, 2])
    await cluster.sleep(2 * hour_s)
    const [first = "", , , fourth = ""] = owners
    cluster.network.block(fourth, first)
    await cluster.sweep(fourth)
    assert.equal((await cluster.shards(blob)).size, 3)
    cluster.network.heal()
    await cluster.give(first, blob, { index: 0, data_shards: 4 })
    await cluster.sleep(settle_s)
    await cluster.sweepAll()
    assert.equal((await cluster.shards(blob)).size, 6, "four make it whole: it is completed")
  })
})
