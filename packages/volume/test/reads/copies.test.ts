/** A volume as a node's engine in a cluster: the contract, and what survives its restarts. */
import assert from "node:assert/strict"
import { Result, Struct } from "effect"
import { describe, it } from "vitest"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { RecordFacts } from "#schemas/blob-storage/volume.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { nodeEngineContract } from "../../../../test/contract/blob-storage/node-engine.ts"
import {
  getAll,
  idOf,
  kindsOf,
  one,
  origin,
  putOrder,
  readAll,
  send,
  sendShard,
  shardBytes,
  shardOf,
  tagIn,
  wholeOf,
} from "../../../../test/contract/blob-storage/node-engine-copies.ts"
import type { VolumeEngine } from "../../engine.ts"
import { batchesIn, flip, loseCheckpoints } from "../damaged.ts"
import { copyOf, freshFolder, opened } from "../opened.ts"
import { flipBit, withVolume } from "../volume-folder.ts"

const clock = () => 0n

nodeEngineContract("a volume as a node's engine", (limits) =>
  opened(freshFolder(), { ...limits, clock }),
)

/** The results that are compared before a volume is closed and after it is opened again. */
const allOf = async (engine: NodeEngine) => {
  const { copies } = await engine.copies("", "", 1000)
  const held = copies.filter(({ kind }) => kind !== "tombstone")
  return {
    copies,
    usage: Struct.omit(await engine.usage(), ["used_bytes"]),
    facts: await engine.scan(0, 1000),
    metas: await Promise.all(held.map(({ id }) => engine.stat(id))),
    tombstones: await Promise.all(copies.map(({ id }) => engine.tombstone(id))),
    bytes: await Promise.all(held.map(async ({ id }) => (await readAll(engine, id)).bytes)),
  }
}

const shard_sizes = [10, 100, 9000, 60_000, 500_000]

/** Copies of every kind: whole and shards, small and large, deleted in every way, released. */
const fill = async (engine: NodeEngine) => {
  for (const [n, size] of shard_sizes.entries()) {
    const bytes = noise(100 + n, size)
    await sendShard(engine, shardOf(bytes, { index: n, data_shards: 4 }))
    const whole = noise(200 + n, size)
    const { copy } = await send(engine, wholeOf(whole), whole)
    const put = await engine.put(putOrder, [noise(300 + n, size)], 1000n)
    const buried = shardOf(noise(400 + n, size), { index: n, data_shards: 4 })
    await sendShard(engine, buried)
    if (n % 2 === 0) await engine.release(copy.id, copy.stored_at, 2000n)
    if (n % 2 === 1) await engine.delete(put.id, origin, 3000n)
    await engine.deleteClusterWide(buried.id, origin, 9_000_000n)
    if (n % 2 === 0) await engine.delete(buried.id, origin, 10_000_000n)
  }
}

describe("a volume of copies that is opened again", () => {
  it("keeps all of them, their deletions and facts, however it was closed", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    await fill(engine)
    const before = await allOf(engine)
    assert.equal(before.copies.length, 5 + 2 + 3 + 2 + 5)
    const killed = copyOf(dir)
    assert.deepEqual(await allOf(await opened(killed, { clock })), before)
    await engine.checkpoint()
    const after_checkpoint = copyOf(dir)
    assert.deepEqual(await allOf(await opened(after_checkpoint, { clock })), before)
    await engine.close()
    const rebuilt = copyOf(dir)
    loseCheckpoints(rebuilt)
    assert.deepEqual(await allOf(await opened(rebuilt, { clock })), before)
    assert.deepEqual(await allOf(await opened(dir, { clock })), before)
  })

  it("keeps a deletion from a clock that is ahead", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const bytes = noise(1, 1000)
    await engine.deleteClusterWide(idOf(bytes), origin, 9_000_000n)
    await engine.put(putOrder, [bytes], 4000n)
    await engine.close()
    const again = await opened(dir, { clock })
    const copy = await one(again, idOf(bytes))
    assert(copy?.kind === "whole")
    assert.deepEqual([copy.created_at, copy.stored_at], [9_000_001n, 4000n])
  })

  it("drops staged bytes and reuses their space", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const staging = engine.stage(undefined)
    for (let part = 0; part < 4; part++) await staging.write(noise(part, 25_000))
    await staging.seal()
    const killed = await opened(copyOf(dir), { clock })
    assert.equal(killed.status().live_bytes, 0)
    const { extent_files } = killed.status()
    const parts = [noise(1, 70_000), noise(2, 70_000)]
    for (const bytes of parts) await send(killed, wholeOf(bytes), bytes)
    // One more may be created in advance, in the background.
    assert(killed.status().extent_files <= extent_files + 1)
    for (const bytes of parts) assert((await getAll(killed, idOf(bytes))).equals(bytes))
    await staging.abort()
  })
})

/** Fills the log, so that compaction has something to do. */
const crowd = async (engine: VolumeEngine, from: number) => {
  const seeds = Array.from({ length: 60 }, (_, n) => from + n)
  const puts = seeds.map((seed) => engine.put(putOrder, [noise(seed, 9000)], 1000n))
  for (const { id } of await Promise.all(puts)) await engine.delete(id, origin, 2000n)
  await engine.acknowledge((await engine.scan(0, 1000)).at(-1)?.cursor ?? 0)
}

describe("upkeep of copies", () => {
  it("moves shards, deletions and released copies without changing them", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    await crowd(engine, 1000)
    await fill(engine)
    await crowd(engine, 2000)
    const before = Struct.omit(await allOf(engine), ["facts"])
    let moved_files = 0
    for (let round = 0; round < 10; round++) {
      const { log_files, extent_files } = await engine.compact()
      moved_files += log_files + extent_files
    }
    assert(moved_files > 0)
    assert.deepEqual(Struct.omit(await allOf(engine), ["facts"]), before)
    await engine.close()
    loseCheckpoints(dir)
    const again = await opened(dir, { clock })
    assert.deepEqual(Struct.omit(await allOf(again), ["facts"]), before)
  })

  it("finds a corrupt shard, small or large, and no other", async () => {
    await withVolume(async (volume) => {
      const { engine, dir } = volume
      const orders = [10_000, 3_000_000, 20_000, 4_000_000].map((size, index) =>
        shardOf(noise(size, size), { index, data_shards: 4 }),
      )
      for (const order of orders) await sendShard(engine, order)
      await engine.scrub()
      assert.deepEqual(await kindsOf(engine), ["stored", "stored", "stored", "stored"])
      const [small, large, ...others] = orders
      assert(small && large)
      for (const order of [small, large]) flipBit(dir, shardBytes(order).subarray(200, 240))
      await engine.scrub()
      for (const order of [small, large]) {
        assert.equal(await one(engine, order.id), undefined)
        assert.equal(await tagIn(() => readAll(engine, order.id)), "BlobNotFound")
      }
      const gone = (await engine.scan(4, 10)).map(({ kind, size, shard }) => [kind, size, shard])
      const wanted = [small, large].map(({ size, shard }) => {
        return ["quarantined", size, { ...shard, bytes: size === 10_000 ? 2560 : 786_432 }]
      })
      assert.deepEqual(new Set(gone.map(String)), new Set(wanted.map(String)))
      for (const order of others) {
        assert((await readAll(engine, order.id)).bytes.equals(shardBytes(order)))
      }
      const left = others.reduce((sum, order) => sum + shardBytes(order).length, 0)
      assert.equal((await engine.usage()).payload_bytes, left)
      // Another copy repairs it.
      assert.equal((await sendShard(engine, small)).created, true)
    })
  })

  it("identifies a shard with a corrupt head by its tail", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const order = shardOf(noise(1, 10_000), { index: 4, data_shards: 4 })
    await sendShard(engine, order)
    await engine.put(putOrder, [noise(2, 100)], 1000n)
    await engine.close()
    const [batch] = batchesIn(dir)
    const [record] = batch?.records ?? []
    assert(batch && record)
    const again = await opened(dir, { clock })
    flip(batch.path, record.position + 40)
    assert.equal(await tagIn(() => readAll(again, order.id)), "BlobCorrupt")
    const fact = (await again.scan(0, 10)).at(-1)
    assert.deepEqual(
      [fact?.kind, fact?.size, fact?.policy, fact?.shard],
      ["quarantined", 10_000, order.policy, { index: 4, data_shards: 4, bytes: 2560 }],
    )
    assert.equal((await again.usage()).payload_bytes, 100)
  })

  it("hides a copy with a damaged record, and quarantines it", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const order = shardOf(noise(1, 10_000), { index: 4, data_shards: 4 })
    await sendShard(engine, order)
    const [record] = batchesIn(dir)[0]?.records ?? []
    flip(batchesIn(dir)[0]?.path ?? "", (record ?? assert.fail("no record")).position + 40)
    assert.deepEqual(await engine.copiesOf([order.id, idOf(noise(2, 1))]), [undefined, undefined])
    assert.deepEqual(await engine.copies("", "", 10), { copies: [], next: undefined })
    assert.deepEqual(await kindsOf(engine), ["stored", "quarantined"])
    await engine.close()
    // The fact that it was stored was in the same record.
    assert.deepEqual(await kindsOf(await opened(dir, { clock })), ["quarantined"])
  })

  it("reports a copy that is corrupt at both ends to the event log, which accepts it", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const none = { ...putOrder, policy: "REPLICATION_POLICY_NONE" } as const
    const { id } = await engine.put(none, [noise(1, 1000)], 1000n)
    const [batch] = batchesIn(dir)
    const [record] = batch?.records ?? []
    assert(batch && record)
    const facts = await engine.scan(0, 10)
    flip(batch.path, record.position + 40)
    // The tail follows the payload: its last byte belongs to its CRC.
    flip(batch.path, record.payload + 1000 + 60)
    assert.equal(await tagIn(() => engine.get(id, {}, 2000n)), "BlobCorrupt")
    const after = await engine.scan(facts.length, 10)
    assert.deepEqual([after[0]?.size, after[0]?.checksum], [0, ""])
    const wanted = [...facts, ...after].map(({ at, ...fact }) => ({ ...fact, at: String(at) }))
    const command = RecordFacts.make({ from: 0, to: wanted.at(-1)?.cursor ?? 0, facts: wanted })
    const decided = Volume.decide(Volume.initialState, command)
    assert.equal(Result.isSuccess(decided) && decided.success.length, 2)
  })

  it("does not take a damaged record of a released copy for a deletion", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const bytes = noise(1, 100)
    const { copy } = await send(engine, wholeOf(bytes), bytes)
    await engine.release(copy.id, copy.stored_at, 2000n)
    await crowd(engine, 3000)
    const released = batchesIn(dir).flatMap(({ path, records }) =>
      records.filter(({ id }) => id === copy.id).map((record) => ({ path, ...record })),
    )
    const last = released.at(-1) ?? assert.fail("no record")
    flip(last.path, last.position + 40)
    for (let round = 0; round < 5; round++) await engine.compact()
    assert.equal(await one(engine, copy.id), undefined)
    assert.equal(await engine.tombstone(copy.id), undefined)
    assert.equal((await send(engine, wholeOf(bytes), bytes)).created, true)
  })
})

describe("a copy that is already stored", () => {
  it("is not received again, small or as a shard", async () => {
    const engine = await opened(freshFolder(), { clock })
    const bytes = noise(1, 10_000)
    const shard = shardOf(noise(3, 100_000), { index: 1, data_shards: 4 })
    await send(engine, wholeOf(bytes), bytes)
    await sendShard(engine, shard)
    // Another extent file is created in the background, in advance.
    const status = () => ({ ...engine.status(), extent_files: 0 })
    const before = status()
    for (let times = 0; times < 5; times++) {
      // The bytes are ignored: the stored copy satisfies the order.
      const whole = await send(engine, wholeOf(bytes), noise(2, bytes.length))
      const part = await send(engine, shard, noise(2, shardBytes(shard).length))
      assert.deepEqual([whole.created, part.created], [false, false])
    }
    assert.deepEqual(status(), before)
  })

  it("that is deleted while it is sent again is requested once more", async () => {
    const engine = await opened(freshFolder(), { clock })
    const bytes = noise(1, 1000)
    const order = wholeOf(bytes)
    const { copy } = await send(engine, order, bytes)
    const receiving = engine.receive(order, bytes.length)
    await receiving.write(bytes)
    await engine.release(order.id, copy.stored_at, 2000n)
    assert.equal(await tagIn(() => receiving.finish(3000n)), "BlobStoreFailed")
    assert.equal((await send(engine, order, bytes)).created, true)
  })
})
