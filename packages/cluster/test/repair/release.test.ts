/** The release of copies: one copy remains, regardless of the rings that the nodes know. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { makeRepairWorld, type RepairWorld } from "./world.ts"

const hours_s = 7300
const names = ["a", "b", "c"]

/** A blob owned by `owner` alone while only `active` are members. */
const blobOf = (cluster: RepairWorld, text: string) => cluster.blob(text, "REPLICATION_POLICY_NONE")

const ownedBy = (cluster: RepairWorld, owner: string) => {
  for (let n = 0; ; n++) {
    const blob = blobOf(cluster, `blob ${n}`)
    if (cluster.ownersOf(blob, 1)[0] === owner) return blob
  }
}

const others = (name: string) => names.filter((other) => other !== name)

describe("the release of a copy", () => {
  it("requires the keepers' confirmation for the same ring version", async () => {
    const cluster = makeRepairWorld(names)
    const blob = ownedBy(cluster, "b")
    await cluster.give("a", blob)
    await cluster.give("b", blob)
    await cluster.sleep(hours_s)
    cluster.setRing({}, ["b"])
    await cluster.sweep("a")
    assert.deepEqual(await cluster.holders(blob), ["a", "b"])
    cluster.hear("b")
    await cluster.sweep("a")
    assert.deepEqual(await cluster.holders(blob), ["b"])
  })
  it("leaves one copy if each of two nodes considers the other the owner", async () => {
    const cluster = makeRepairWorld(names)
    // By the first ring the owner is a; a left and returned, and by then the owner is b.
    const blob = ownedBy(cluster, "a")
    await cluster.give("a", blob)
    await cluster.give("b", blob)
    await cluster.give("c", blob)
    await cluster.sleep(hours_s)
    cluster.setRing({ active: others("a") }, ["b"])
    const [owner = ""] = cluster.ownersOf(blob, 1)
    const sweeps = names.map((name) => cluster.node(name).repairs.sweep())
    await cluster.world.until(Promise.all(sweeps))
    assert.ok((await cluster.holders(blob)).length > 0)
    cluster.hear("b")
    await cluster.sweepAll(2)
    assert.deepEqual(await cluster.holders(blob), [owner])
  })
  it("is cancelled if the ring changes during the confirmation", async () => {
    const cluster = makeRepairWorld(names)
    const blob = ownedBy(cluster, "b")
    await cluster.give("a", blob)
    await cluster.give("b", blob)
    await cluster.sleep(hours_s)
    cluster.network.setFaults({ delay_ms_max: 1000, slow: 0, cut: 0, lost: 0 })
    const { keeps } = cluster.node("b").repairs
    let queries = 0
    const { engine, now } = cluster.node("b")
    cluster.network.attach({
      node_id: "b",
      engine,
      now,
      isUp: () => true,
      keeps: async (ids, ring_version, is_read) => {
        queries += 1
        const kept = await keeps(ids, ring_version, is_read)
        cluster.setRing({})
        return kept
      },
    })
    await cluster.sweep("a")
    assert.equal(queries, 1)
    assert.deepEqual(await cluster.holders(blob), ["a", "b"])
  })
  it("is not confirmed by a node that does not own, have or keep the blob", async () => {
    const cluster = makeRepairWorld(names)
    const blob = ownedBy(cluster, "b")
    const { repairs } = cluster.node("b")
    assert.deepEqual(await repairs.keeps([blob.id], 1, false), [false])
    await cluster.give("b", blob)
    assert.deepEqual(await repairs.keeps([blob.id], 1, false), [true])
    assert.deepEqual(await repairs.keeps([blob.id], 2, false), [false])
    cluster.setRing({ active: ["a", "c"], leaving: ["b"] })
    assert.deepEqual(await repairs.keeps([blob.id], 2, false), [false])
  })
  it("is confirmed only after verification if it is the last other copy", async () => {
    const cluster = makeRepairWorld(names)
    const blob = ownedBy(cluster, "b")
    await cluster.give("a", blob)
    await cluster.give("b", blob)
    await cluster.sleep(hours_s)
    cluster.node("b").engine.corrupt(blob.id)
    await cluster.sweep("a")
    assert.deepEqual(await cluster.holders(blob), ["a"])
    await cluster.sweepAll(3)
    assert.deepEqual(await cluster.holders(blob), ["b"])
  })
  it("is denied while a long copy is being verified, and confirmed afterwards", async () => {
    const cluster = makeRepairWorld(names, { repair_bytes_per_second: 100 })
    const blob = ownedBy(cluster, "b")
    await cluster.give("b", blob)
    const { repairs } = cluster.node("b")
    const confirm = () => cluster.world.until(repairs.keeps([blob.id], 1, true))
    assert.deepEqual(await confirm(), [false])
    await cluster.sleep(20)
    assert.deepEqual(await confirm(), [true])
    // A verification counts once, and expires.
    assert.deepEqual(await confirm(), [false])
    await cluster.sleep(86_400)
    cluster.node("b").engine.corrupt(blob.id)
    assert.deepEqual(await confirm(), [false])
  })
  it("is not confirmed by the verification of a copy that was replaced", async () => {
    const cluster = makeRepairWorld(names, { repair_bytes_per_second: 100 })
    const blob = ownedBy(cluster, "b")
    await cluster.give("b", blob)
    const { repairs, engine, now } = cluster.node("b")
    const confirm = () => cluster.world.until(repairs.keeps([blob.id], 1, true))
    assert.deepEqual(await confirm(), [false])
    await cluster.sleep(20)
    const [old] = await engine.copiesOf([blob.id])
    assert.ok(old?.kind === "whole")
    await engine.release(blob.id, old.stored_at, now())
    await cluster.give("b", blob)
    engine.corrupt(blob.id)
    assert.deepEqual(await confirm(), [false])
  })
  it("is not confirmed by a node that is releasing its own copy", async () => {
    const cluster = makeRepairWorld(names)
    const blob = ownedBy(cluster, "b")
    await cluster.give("a", blob)
    await cluster.give("b", blob)
    await cluster.sleep(hours_s)
    const responses: Array<boolean> = []
    const { engine, now, repairs } = cluster.node("b")
    cluster.network.attach({
      node_id: "b",
      engine,
      now,
      isUp: () => true,
      keeps: async (ids, ring_version, is_read) => {
        responses.push(...(await cluster.node("a").repairs.keeps(ids, ring_version, is_read)))
        return repairs.keeps(ids, ring_version, is_read)
      },
    })
    assert.deepEqual(await cluster.node("a").repairs.keeps([blob.id], 1, false), [true])
    await cluster.sweep("a")
    assert.deepEqual(responses, [false])
    assert.deepEqual(await cluster.holders(blob), ["b"])
  })
})
