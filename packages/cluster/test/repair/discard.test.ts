/** Shards of unfinished puts: discarded only if certainly no node has the others. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { hour_s, makeRepairWorld, type RepairWorld } from "./world.ts"

const six = ["a", "b", "c", "d", "e", "f"]
const joined = ["g", "h", "i"]
const data_shards = 4

/** Three shards of a blob on the last three of six owners, old enough to be discarded. */
const unfinished = async (cluster: RepairWorld) => {
  cluster.setRing({ active: six })
  const blob = cluster.blob("unfinished", "REPLICATION_POLICY_EC42")
  const owners = cluster.ownersOf(blob, 6)
  const created_at = cluster.world.now()
  const storeShard = (name: string, index: number) =>
    cluster.give(name, blob, { index, data_shards }, created_at)
  for (const index of [3, 4, 5]) await storeShard(owners[index] ?? "", index)
  await cluster.sleep(2 * hour_s)
  const [first = "", , , fourth = ""] = owners
  const left = async () => (await cluster.shards(blob)).size
  return { blob, first, fourth, give: storeShard, left }
}

describe("shards of unfinished puts", () => {
  it("are discarded one by one once all nodes were queried", async () => {
    const cluster = makeRepairWorld([...six, ...joined])
    const { left } = await unfinished(cluster)
    await cluster.sweepAll()
    assert.equal(await left(), 0)
  })
  for (const [description, slow] of [
    ["a queried node knows a newer ring", ["fourth"]],
    ["only the log knows a newer ring", ["all"]],
  ] as const) {
    it(`stay if nodes that joined have the others: ${description}`, async () => {
      const cluster = makeRepairWorld([...six, ...joined])
      const { fourth, give, left } = await unfinished(cluster)
      cluster.setRing({ active: [...six, ...joined] }, slow[0] === "all" ? six : [fourth])
      for (const [index, name] of joined.entries()) await give(name, index)
      await cluster.sweep(fourth)
      assert.equal(await left(), 6)
    })
  }
  it("stay if the log confirms an older ring than another node knows", async () => {
    const cluster = makeRepairWorld([...six, ...joined])
    const { first, fourth, left } = await unfinished(cluster)
    const { engine, now } = cluster.node(first)
    const host = { node_id: first, engine, now, isUp: () => true }
    cluster.network.attach({ ...host, ringVersion: () => 3 })
    await cluster.sweep(fourth)
    assert.equal(await left(), 3)
    cluster.network.attach(host)
    await cluster.sweep(fourth)
    assert.equal(await left(), 3, "nor where one does not say which it knows")
    cluster.network.attach({ ...host, ringVersion: () => 2 })
    await cluster.sweep(fourth)
    assert.equal(await left(), 2)
  })
  it("stay if the log cannot be reached", async () => {
    const cluster = makeRepairWorld([...six, ...joined])
    const { fourth, left } = await unfinished(cluster)
    cluster.cutOff(fourth)
    await cluster.sweep(fourth)
    assert.equal(await left(), 3)
  })
  for (const [what, shards, pending] of [
    ["delay a leave and are reported while the log cannot be reached", 3, 1],
    ["do not delay a leave once all nodes were queried", 2, 0],
  ] as const) {
    it(what, async () => {
      const cluster = makeRepairWorld([...six, ...joined])
      const { fourth, left } = await unfinished(cluster)
      cluster.setRing({ active: six.filter((name) => name !== fourth), leaving: [fourth] })
      if (pending > 0) cluster.cutOff(fourth)
      await cluster.sweep(fourth)
      assert.equal(await left(), shards)
      assert.equal(cluster.node(fourth).repairs.progress().pending_migrations, pending)
    })
  }
  it("stay if another shard was moving between nodes during the survey", async () => {
    const cluster = makeRepairWorld([...six, ...joined])
    const { first, fourth, give, left } = await unfinished(cluster)
    await give(first, 0)
    const { engine, now } = cluster.node(first)
    let queries = 0
    const copiesOf: typeof engine.copiesOf = async (ids) => {
      queries += 1
      return queries === 1 ? ids.map(() => undefined) : engine.copiesOf(ids)
    }
    cluster.network.attach({
      node_id: first,
      engine: { ...engine, copiesOf },
      now,
      isUp: () => true,
      ringVersion: () => 2,
    })
    await cluster.sweep(fourth)
    assert.equal(await left(), 4)
    assert.equal(queries, 2)
  })
})
