/** The repair of replicas on several nodes: restores missing copies and changes nothing else. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { MadeBlob } from "./blob.ts"
import { hour_s, makeRepairWorld, type RepairWorld } from "./world.ts"

const names = ["a", "b", "c", "d"]
const settle_s = 11
const origin = { actor: "test", request_id: "", correlation_id: "" }

/** A blob that only its first owner has, old enough for a sweep to inspect it. */
const singleCopy = async (cluster: RepairWorld, text = "one") => {
  const blob = cluster.blob(text, "REPLICATION_POLICY_REPLICA3")
  const [first = ""] = cluster.ownersOf(blob, 3)
  await cluster.give(first, blob)
  await cluster.sleep(settle_s)
  return { blob, first, owners: cluster.ownersOf(blob, 3) }
}

const readAt = async (cluster: RepairWorld, name: string, { id }: MadeBlob) => {
  const { data, meta } = await cluster.node(name).engine.get(id, {}, cluster.world.now())
  return { data, meta }
}

describe("the repair of replicas", () => {
  it("sends owners their missing copies, with the original metadata", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, first, owners } = await singleCopy(cluster)
    const result = await cluster.sweep(first)
    assert.deepEqual(
      { actions: result.actions, missing: result.missing },
      { actions: 2, missing: 0 },
    )
    assert.deepEqual(await cluster.holders(blob), [...owners].sort())
    const [, second = ""] = owners
    const here = await readAt(cluster, first, blob)
    assert.deepEqual(await readAt(cluster, second, blob), here)
    assert.deepEqual(here.meta.labels, { made: "by a test" })
    const { repairs, bytes_moved } = cluster.node(first).repairs.progress()
    assert.deepEqual({ repairs, bytes_moved }, { repairs: 2, bytes_moved: 2 * blob.bytes.length })
    assert.equal((await cluster.sweep(first)).actions, 0)
  })
  it("moves copies to different hosts, so that the loss of one host loses none", async () => {
    const hosts = ["x", "y", "z"]
    const nodes = hosts.flatMap((host) => [`${host}.1`, `${host}.2`])
    const cluster = makeRepairWorld(nodes)
    const blobs = Array.from({ length: 24 }, (_, at) =>
      cluster.blob(`apart ${at}`, "REPLICATION_POLICY_REPLICA2"),
    )
    for (const blob of blobs) {
      await cluster.give("x.1", blob)
      await cluster.give("x.2", blob)
    }
    await cluster.sleep(2 * hour_s)
    await cluster.sweepAll(3)
    for (const blob of blobs) {
      const holders = await cluster.holders(blob)
      assert.equal(holders.length, 2)
      assert.equal(new Set(holders.map((node) => node.split(".")[0])).size, 2)
    }
  })
  it("ignores a blob that a put may still be storing", async () => {
    const cluster = makeRepairWorld(names)
    const blob = cluster.blob("young", "REPLICATION_POLICY_REPLICA3")
    const [first = ""] = cluster.ownersOf(blob, 3)
    await cluster.give(first, blob)
    const { actions, too_new, is_complete } = await cluster.sweep(first)
    assert.deepEqual(
      { actions, too_new, is_complete },
      { actions: 0, too_new: 1, is_complete: true },
    )
  })
  it("lets one holder act, and the next one if that cannot", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, first, owners } = await singleCopy(cluster)
    const [, second = "", third = ""] = owners
    await cluster.give(second, blob)
    await cluster.sleep(settle_s)
    assert.equal((await cluster.sweep(second)).actions, 0)
    cluster.network.block(first, third)
    assert.equal((await cluster.sweep(first)).missing, 0, "it did not hear of what is missing")
    assert.equal((await cluster.sweep(second)).actions, 1)
    assert.deepEqual(await cluster.holders(blob), [...owners].sort())
  })
  it("does not restore a copy that was deleted locally: another node holds it", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, first, owners } = await singleCopy(cluster)
    const [, second = ""] = owners
    await cluster.sweep(first)
    await cluster.node(second).engine.delete(blob.id, origin, cluster.world.now())
    await cluster.sleep(settle_s)
    await cluster.sweepAll(4)
    assert.deepEqual(
      await cluster.holders(blob),
      names.filter((name) => name !== second),
    )
  })
  it("releases a misplaced copy after an hour once all owners keep theirs", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, owners } = await singleCopy(cluster)
    const [other = ""] = names.filter((name) => !owners.includes(name))
    await cluster.give(other, blob)
    await cluster.sleep(settle_s)
    await cluster.sweepAll()
    assert.deepEqual(await cluster.holders(blob), names)
    assert.equal(cluster.node(other).repairs.progress().pending_migrations, 1)
    await cluster.sleep(hour_s)
    await cluster.sweep(other)
    assert.deepEqual(await cluster.holders(blob), [...owners].sort())
    assert.equal(cluster.node(other).repairs.progress().pending_migrations, 0)
  })
  it("keeps a misplaced copy while an owner lacks one or does not respond", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, first, owners } = await singleCopy(cluster)
    const [other = ""] = names.filter((name) => !owners.includes(name))
    await cluster.give(other, blob)
    await cluster.sweep(first)
    await cluster.sleep(hour_s + settle_s)
    cluster.network.block(other, first)
    assert.equal((await cluster.sweep(other)).is_complete, false)
    assert.deepEqual(await cluster.holders(blob), names)
  })
  it("repairs hinted blobs: a corrupt local copy is fetched from another node", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, first } = await singleCopy(cluster)
    await cluster.sweep(first)
    const { engine, repairs } = cluster.node(first)
    engine.corrupt(blob.id)
    await assert.rejects(readAt(cluster, first, blob))
    assert.equal(await cluster.copyOf(first, blob), undefined)
    repairs.hint({ id: blob.id, why: "corrupt", nodes: [] })
    assert.equal(await cluster.world.until(repairs.heal()), true)
    assert.deepEqual((await readAt(cluster, first, blob)).data, blob.bytes)
  })
  it("retries a hint while no node responds, and leaves it to the sweep in the end", async () => {
    const cluster = makeRepairWorld(names)
    const { blob, first, owners } = await singleCopy(cluster)
    const [, second = "", third = ""] = owners
    const { repairs } = cluster.node(first)
    cluster.network.block(first, second)
    repairs.hint({ id: blob.id, why: "replication", nodes: [second] })
    assert.equal(await cluster.world.until(repairs.heal()), true)
    assert.deepEqual(await cluster.holders(blob), [first, third].sort())
    assert.equal(await cluster.world.until(repairs.heal()), false)
    cluster.network.heal()
    await cluster.sleep(1)
    assert.equal(await cluster.world.until(repairs.heal()), true)
    assert.deepEqual(await cluster.holders(blob), [...owners].sort())
    await cluster.sleep(hour_s)
    assert.equal(await cluster.world.until(repairs.heal()), false)
  })
  it("starts at once after a hint, and within seconds after a ring change", async () => {
    const cluster = makeRepairWorld(names)
    cluster.setRing({ active: ["a", "b"] })
    for (const name of names) cluster.node(name).repairs.start()
    const blob = cluster.blob("by itself", "REPLICATION_POLICY_REPLICA2")
    await cluster.give("a", blob)
    cluster.node("a").repairs.hint({ id: blob.id, why: "replication", nodes: ["b"] })
    await cluster.sleep(1)
    assert.deepEqual(await cluster.holders(blob), ["a", "b"])
    const { actions } = cluster.node("a").repairs.progress().last_sweep ?? {}
    assert.equal(actions, 0)
    await cluster.sleep(settle_s)
    cluster.setRing({ active: ["b", "c"] })
    await cluster.sleep(settle_s)
    assert.deepEqual(await cluster.holders(blob), ["a", "b", "c"])
    await Promise.all(names.map((name) => cluster.world.until(cluster.node(name).repairs.stop())))
  })
  it("reports failures once a minute, and continues", async () => {
    const cluster = makeRepairWorld(names)
    const { first, owners } = await singleCopy(cluster)
    for (const owner of owners) if (owner !== first) cluster.node(owner).engine.limit(0)
    cluster.node(first).repairs.start()
    await cluster.sleep(50)
    assert.equal(cluster.problems.length, 1, cluster.problems.join("\n"))
    assert.match(cluster.problems[0] ?? "", /2 copies could not be created or moved yet/)
    for (const owner of owners) cluster.node(owner).engine.limit(2 ** 40)
    await cluster.sleep(hour_s)
    assert.equal(cluster.node(first).repairs.progress().last_sweep?.missing, 0)
    await cluster.world.until(cluster.node(first).repairs.stop())
  })
})
