import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { nodeEngineContract } from "../../contract/blob-storage/node-engine.ts"
import {
  collect,
  getAll,
  kindsOf,
  one,
  putOrder,
  readAll,
  sendShard,
  shardOf,
  tagIn,
  wholeOf,
} from "../../contract/blob-storage/node-engine-copies.ts"

nodeEngineContract("a node's engine in memory", async (limits) => memoryEngine(limits))

describe("a node's engine in memory, in a test's hands", () => {
  it("finds a byte corrupt when a read comes to it, and sets the copy aside", async () => {
    const engine = memoryEngine()
    const bytes = noise(1, 3_000_000)
    const { id } = await engine.put(putOrder, [bytes], 1000n)
    assert.equal(engine.corrupt(id, 3_000_000), false)
    assert.equal(engine.corrupt(id, 2_000_000), true)
    const part = await engine.get(id, { offset: 0, length: 10 }, 2000n)
    assert.equal(part.data?.length, 10)
    const { windows } = await engine.get(id, {}, 2000n)
    const got: Array<number> = []
    const reading = async () => {
      for await (const { length } of windows()) got.push(length)
    }
    assert.equal(await tagIn(reading), "BlobCorrupt")
    assert.deepEqual(got, [983_040, 983_040])
    assert.equal(await one(engine, id), undefined)
    assert.deepEqual(await kindsOf(engine), ["stored", "quarantined"])
    assert.equal((await engine.usage()).quarantined, 1)
    // A put from another node repairs the blob.
    await engine.put(putOrder, [bytes], 3000n)
    assert((await getAll(engine, id)).equals(bytes))
  })
  it("finds a shard corrupt too", async () => {
    const engine = memoryEngine()
    const order = shardOf(noise(1, 1000), { index: 0, data_shards: 4 })
    await sendShard(engine, order)
    engine.corrupt(order.id)
    assert.equal(await tagIn(() => readAll(engine, order.id)), "BlobCorrupt")
    assert.equal(await one(engine, order.id), undefined)
  })
  it("loses what is under way in a crash, and nothing that is stored", async () => {
    const engine = memoryEngine({ capacity_bytes: 250_000 })
    const bytes = noise(1, 100_000)
    const { id } = await engine.put(putOrder, [bytes], 1000n)
    const other = noise(2, 100_000)
    const receiving = engine.receive(wholeOf(other), other.length)
    await receiving.write(other)
    const staging = engine.stage(undefined)
    await staging.write(noise(3, 1000))
    engine.crash()
    assert.equal(await tagIn(() => receiving.finish(2000n)), "BlobStoreFailed")
    assert.equal(await tagIn(() => staging.seal()), "BlobStoreFailed")
    assert((await getAll(engine, id)).equals(bytes))
    const upload = engine.upload(putOrder, undefined)
    await upload.write(other)
    await upload.finish(3000n)
  })
  it("goes on with an image, which it does not change", async () => {
    const engine = memoryEngine()
    const { id } = await engine.put(putOrder, [noise(1, 100)], 1000n)
    const image = engine.image()
    await engine.deleteClusterWide(id, putOrder.origin, 2000n)
    const old = memoryEngine({ image })
    assert((await collect((await old.get(id, {}, 1n)).windows())).equals(noise(1, 100)))
    await old.put(putOrder, [noise(2, 100)], 1000n)
    assert.equal((await memoryEngine({ image }).usage()).blob_count, 1)
    assert.deepEqual(await kindsOf(old), ["stored", "stored"])
  })
  it("rejects a put beyond its limit, and accepts it after the limit is raised", async () => {
    const engine = memoryEngine()
    await engine.put(putOrder, [noise(1, 100)], 1000n)
    engine.limit(150)
    const put = () => engine.put(putOrder, [noise(2, 100)], 2000n)
    assert.equal(await tagIn(put), "BlobCapacityExceeded")
    engine.limit(200)
    await put()
  })
})
