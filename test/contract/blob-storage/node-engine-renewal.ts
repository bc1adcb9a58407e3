/** Contract of every NodeEngine for copies that take on the time of a later put. */
import assert from "node:assert/strict"
import { Struct } from "effect"
import type { CopyOrder, HeldCopy, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { noise } from "./engine-bytes.ts"
import type { Promised } from "./node-engine.ts"
import {
  kindsOf,
  no_id,
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
} from "./node-engine-copies.ts"

/** Inline blobs, and blobs in extents. */
const sizes = [0, 1000, 100_000, 3_000_000]

const sendOne = (engine: NodeEngine, order: CopyOrder, bytes: Uint8Array, at?: bigint) =>
  order.shard ? sendShard(engine, order, at) : send(engine, order, bytes, at)

/** Everything about a copy except its put time and its arrival time. */
const lasting = async (engine: NodeEngine, { id }: CopyOrder) => {
  const { copy, meta, bytes } = await readAll(engine, id)
  const rest = Struct.omit(copy, ["put_at", "stored_at"])
  const { payload_bytes, blob_count } = await engine.usage()
  return { rest, meta, bytes, payload_bytes, blob_count, facts: await engine.scan(0, 10) }
}

export const renewals = (promised: Promised) => {
  for (const size of sizes) {
    promised(`${size} bytes of a later put are those here, of its time`, async (engine) => {
      const bytes = noise(size, size)
      for (const order of [wholeOf(bytes), shardOf(bytes, { index: 2, data_shards: 4 })]) {
        const { copy } = await sendOne(engine, order, bytes)
        const before = await lasting(engine, order)
        const renewed: HeldCopy = { ...copy, put_at: 700n, stored_at: copy.stored_at + 1000n }
        assert.deepEqual(await engine.renew(order.id, 700n, renewed.stored_at), renewed)
        assert.deepEqual(await one(engine, order.id), renewed)
        for (const put_at of [500n, 699n, 700n]) {
          assert.deepEqual(await engine.renew(order.id, put_at, 9000n), renewed)
        }
        const sent = { ...order, created_at: 800n }
        const again = await sendOne(engine, sent, bytes, renewed.stored_at + 1000n)
        const last = { ...renewed, put_at: 800n, stored_at: renewed.stored_at + 1000n }
        assert.deepEqual(again, { copy: last, created: false })
        assert.deepEqual(await lasting(engine, order), before)
        const data = order.shard ? shardBytes(order) : bytes
        assert(before.bytes.equals(data))
        assert.equal(await engine.release(order.id, renewed.stored_at, 10_000n), false)
        assert.equal(await engine.release(order.id, last.stored_at, 10_000n), true)
        assert.equal((await engine.usage()).payload_bytes, 0)
        await engine.acknowledge(10)
      }
    })
  }
  promised("a deletion before the later put leaves the copy alone", async (engine) => {
    for (const size of [1000, 3_000_000]) {
      const bytes = noise(1, size)
      const order = wholeOf(bytes)
      await send(engine, order, bytes)
      await engine.renew(order.id, 700n, 2000n)
      const copy = await one(engine, order.id)
      for (const deleted_at of [500n, 600n, 699n]) {
        await engine.deleteClusterWide(order.id, origin, deleted_at)
        assert.deepEqual(await one(engine, order.id), copy)
      }
      await engine.deleteClusterWide(order.id, origin, 700n)
      assert.equal((await one(engine, order.id))?.kind, "tombstone")
      assert.equal((await engine.usage()).payload_bytes, 0)
      const late = { ...order, put_at: 700n }
      assert.equal(await tagIn(() => send(engine, late, bytes)), "BlobDeletedHere")
      const later = await send(engine, { ...order, put_at: 701n }, bytes, 5000n)
      assert.deepEqual([later.copy.created_at, later.copy.put_at], [500n, 701n])
      assert.deepEqual(await one(engine, order.id), later.copy)
      await engine.deleteClusterWide(order.id, origin, 701n)
    }
    assert.deepEqual(await kindsOf(engine), Array(4).fill(["stored", "deleted"]).flat())
  })
  promised("a delete here of a copy of a later put keeps that put's away", async (engine) => {
    const bytes = noise(1, 1000)
    const order = wholeOf(bytes)
    await send(engine, order, bytes)
    await engine.renew(order.id, 9_000_000n, 2000n)
    await engine.delete(order.id, origin, 3000n)
    for (const put_at of [5000n, 9_000_000n]) {
      assert.equal(await tagIn(() => send(engine, { ...order, put_at }, bytes)), "BlobDeletedHere")
    }
    await send(engine, { ...order, put_at: 9_000_001n }, bytes)
  })
  promised("what was put here is shown as before once it was put again", async (engine) => {
    const { id, meta } = await engine.put(putOrder, [noise(1, 1000)], 1000n)
    await engine.renew(id, 5000n, 5000n)
    assert.deepEqual(await engine.stat(id), meta)
    const again = await engine.put(putOrder, [noise(1, 1000)], 6000n)
    assert.deepEqual(again, { id, meta, created: false })
    assert.deepEqual(await kindsOf(engine), ["stored"])
  })
  promised("of what is not here nothing takes over a time", async (engine) => {
    assert.equal(await engine.renew(no_id, 700n, 2000n), undefined)
    await engine.deleteClusterWide(no_id, origin, 600n)
    assert.equal(await engine.renew(no_id, 700n, 2000n), undefined)
    assert.equal(await engine.tombstone(no_id), 600n)
    assert.deepEqual(await engine.scan(0, 10), [])
  })
}
