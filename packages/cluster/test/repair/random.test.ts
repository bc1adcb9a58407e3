/**
 * From any initial state, a few sweeps place every blob, unchanged, on the nodes that a naive
 * algorithm computes, and after an hour nowhere else.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { type Seeded, seeded } from "../../../../test/world/seeded.ts"
import { type MadeBlob, shardBytes } from "./blob.ts"
import { hour_s, makeRepairWorld, type RepairWorld } from "./world.ts"

const names = ["a", "b", "c", "d", "e", "f", "g", "h"]
const policies = ["NONE", "REPLICA2", "REPLICA3", "EC42"] as const
const seeds = Array.from({ length: 12 }, (_, n) => n + 1)
const blobs = 12
const settle_s = 11
/** Enough sweeps for the turn of each holder, and for the nodes that replace released copies. */
const rounds = 8

const some = (random: Seeded, of: ReadonlyArray<string>, count: number) =>
  of
    .map((name) => ({ name, at: random.next() }))
    .sort((one, other) => one.at - other.at)
    .slice(0, count)
    .map(({ name }) => name)

/** Stores enough copies or shards on random nodes. */
const scatter = async (cluster: RepairWorld, random: Seeded, blob: MadeBlob) => {
  const created_at = cluster.world.now()
  if (blob.policy !== "REPLICATION_POLICY_EC42") {
    for (const name of some(random, names, random.between(1, 4))) {
      await cluster.give(name, blob, undefined, created_at)
    }
    return
  }
  const holders = some(random, names, random.between(4, 8))
  for (const [at, name] of holders.entries()) {
    // The first four suffice for the blob; the others may be duplicates.
    const index = at < 4 ? at : random.between(0, 5)
    await cluster.give(name, blob, { index, data_shards: 4 }, created_at)
  }
}

const check = async (cluster: RepairWorld, blob: MadeBlob, story: string) => {
  const owners = cluster.ownersOf(blob, nodes_needed[blob.policy])
  assert.deepEqual(await cluster.holders(blob), [...owners].sort(), story)
  if (blob.policy === "REPLICATION_POLICY_EC42") {
    const shards = await cluster.shards(blob)
    assert.deepEqual(
      [...shards.values()].toSorted((one, other) => one - other),
      [0, 1, 2, 3, 4, 5],
      story,
    )
    for (const [name, index] of shards) {
      const { data } = await cluster.node(name).engine.read(blob.id, {}, cluster.world.now())
      assert.deepEqual(data, shardBytes(blob, { index, data_shards: 4 }), story)
    }
  } else {
    for (const name of owners) {
      const { data } = await cluster.node(name).engine.get(blob.id, {}, cluster.world.now())
      assert.deepEqual(data, blob.bytes, story)
    }
  }
}

describe("the repair of a random state", () => {
  for (const seed of seeds) {
    it(`places every copy correctly, seed ${seed}`, async () => {
      const random = seeded(seed)
      const cluster = makeRepairWorld(names, { seed })
      const made = Array.from({ length: blobs }, (_, n) => {
        const policy: ReplicationPolicy = `REPLICATION_POLICY_${random.pick(policies)}`
        return cluster.blob(`seed ${seed} blob ${n}`, policy)
      })
      for (const blob of made) await scatter(cluster, random, blob)
      await cluster.sleep(settle_s)
      for (let round = 0; round < rounds; round++) {
        await cluster.sleep(hour_s)
        const order = some(random, names, names.length)
        // In parallel, or one after the other.
        if (random.next() < 0.5) {
          const sweeps = order.map((name) => cluster.node(name).repairs.sweep())
          await cluster.world.until(Promise.all(sweeps))
        } else for (const name of order) await cluster.sweep(name)
      }
      for (const blob of made) await check(cluster, blob, `seed ${seed}: ${blob.id} ${blob.policy}`)
      await cluster.sweepAll()
      for (const name of names) {
        const { last_sweep, pending_migrations } = cluster.node(name).repairs.progress()
        assert.deepEqual([last_sweep?.actions, last_sweep?.missing, pending_migrations], [0, 0, 0])
      }
    })
  }
})
