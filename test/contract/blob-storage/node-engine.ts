/** Contract of every NodeEngine beyond that of BlobEngine, run over each adapter. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { copyBytes } from "#volume"
import { noise } from "./engine-bytes.ts"
import { deletions, listing, releases } from "./node-engine-absence.ts"
import {
  getAll,
  hashOf,
  idOf,
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
import { renewals } from "./node-engine-renewal.ts"
import { stages } from "./node-engine-stage.ts"

export interface NodeEngineLimits {
  readonly capacity_bytes?: number
  readonly size_max_bytes?: number
}
export type Promised = (
  sentence: string,
  body: (engine: NodeEngine) => Promise<void>,
  limits?: NodeEngineLimits,
) => void

/** Small blobs, a blob of one window, and one of several. */
const sizes = [0, 1000, 100_000, 3_000_000]

const empty = { payload_bytes: 0, blob_count: 0, quarantined: 0 }
const assertEmpty = async (engine: NodeEngine) => {
  const { payload_bytes, blob_count, quarantined } = await engine.usage()
  assert.deepEqual({ payload_bytes, blob_count, quarantined }, empty)
  assert.deepEqual(await engine.scan(0, 10), [])
  assert.deepEqual(await engine.copies("", "", 10), { copies: [], next: undefined })
}

const wholes = (promised: Promised) => {
  for (const size of sizes) {
    promised(`a whole copy of ${size} bytes is what the first node said of it`, async (engine) => {
      const bytes = noise(size, size)
      const order = wholeOf(bytes)
      const { id, checksum, policy, labels } = order
      const { copy, created } = await send(engine, order, bytes, 1000n)
      assert.equal(created, true)
      const values = {
        id,
        checksum,
        policy,
        size,
        created_at: 500n,
        put_at: 500n,
        shard: undefined,
      }
      assert.deepEqual(copy, { kind: "whole", ...values, stored_at: 1000n })
      assert.deepEqual(await one(engine, id), copy)
      const times = { created_at: 500n, modified_at: 500n }
      const base64 = Buffer.from(checksum, "hex").toString("base64")
      const meta = { size: BigInt(size), ...times, checksum: base64, labels, policy }
      assert.deepEqual(await engine.stat(id), meta)
      const read = await readAll(engine, id)
      assert.deepEqual({ ...read, bytes: read.bytes.equals(bytes) }, { copy, meta, bytes: true })
      assert((await getAll(engine, id)).equals(bytes))
      assert.deepEqual((await engine.list("", "", 10)).ids, [id])
      const { payload_bytes, blob_count } = await engine.usage()
      assert.deepEqual({ payload_bytes, blob_count }, { payload_bytes: size, blob_count: 1 })
      const [fact] = await engine.scan(0, 10)
      const expected = { cursor: 1, kind: "stored", id, size, checksum: base64, policy, labels }
      assert.deepEqual(fact, { ...expected, at: 1000n, ...origin })
    })
  }
  promised("a whole copy is stored only if its bytes hash to the checksum", async (engine) => {
    for (const size of [1000, 100_000]) {
      const order = wholeOf(noise(1, size))
      assert.equal(await tagIn(() => send(engine, order, noise(2, size))), "BlobIdMismatch")
      const other = { ...order, id: no_id }
      assert.equal(await tagIn(() => send(engine, other, noise(1, size))), "BlobIdMismatch")
    }
    await assertEmpty(engine)
  })
  promised("a blob that is put here and sent here is stored once", async (engine) => {
    const bytes = noise(1, 1000)
    const put = await engine.put(putOrder, [bytes], 1000n)
    const { copy, created } = await send(engine, wholeOf(bytes), bytes, 2000n)
    assert.equal(created, false)
    assert.equal(copy.created_at, put.meta.created_at)
    assert.equal(copy.policy, "REPLICATION_POLICY_REPLICA3")
    const again = await engine.put(putOrder, [bytes], 3000n)
    assert.deepEqual(again, { id: put.id, meta: put.meta, created: false })
    assert.deepEqual(await kindsOf(engine), ["stored"])
  })
  promised("a put returns its fact's cursor if it stored the blob", async (engine) => {
    assert.equal((await engine.put(putOrder, [noise(1, 10)], 1000n)).cursor, 1)
    const upload = engine.upload(putOrder, undefined)
    for (let part = 0; part < 4; part++) await upload.write(noise(part, 30_000))
    assert.equal((await upload.finish(1000n)).cursor, 2)
    assert.equal((await engine.put(putOrder, [noise(1, 10)], 2000n)).cursor, undefined)
  })
}

const shards = (promised: Promised) => {
  for (const size of sizes) {
    promised(`a shard of ${size} bytes is read, and is no blob to a get`, async (engine) => {
      const bytes = noise(size, size)
      const order = shardOf(bytes, { index: 5, data_shards: 4 })
      const { id, checksum, shard } = order
      const data = shardBytes(order)
      const { copy, created } = await sendShard(engine, order)
      assert.equal(created, true)
      const values = { id, checksum, size, policy: "REPLICATION_POLICY_EC42", shard }
      const times = { created_at: 500n, put_at: 500n, stored_at: 1000n }
      assert.deepEqual(copy, { kind: "shard", ...values, ...times })
      assert.deepEqual(await one(engine, id), copy)
      assert.equal(await tagIn(() => engine.get(id, {}, 2000n)), "BlobNotFound")
      const meta = await engine.stat(id)
      assert.equal(meta.size, BigInt(size))
      const read = await readAll(engine, id)
      assert(read.bytes.equals(data))
      assert.deepEqual({ copy: read.copy, meta: read.meta }, { copy, meta })
      for (const [offset, length] of [[1, 100] as const, [40_000, 70_000] as const]) {
        const part = await readAll(engine, id, { offset, length })
        assert(part.bytes.equals(data.subarray(offset, offset + length)))
      }
      assert.deepEqual((await engine.list("", "", 10)).ids, [id])
      const { payload_bytes, blob_count } = await engine.usage()
      assert.deepEqual({ payload_bytes, blob_count }, { payload_bytes: data.length, blob_count: 1 })
      const [fact] = await engine.scan(0, 10)
      assert.equal(fact?.size, size)
      assert.deepEqual(fact?.shard, { index: 5, data_shards: 4, bytes: data.length })
      await engine.delete(id, origin, 3000n)
      const [, deleted] = await engine.scan(0, 10)
      assert.deepEqual(deleted?.shard, fact?.shard)
      assert.equal((await engine.usage()).payload_bytes, 0)
    })
  }
  promised("the same shard again changes nothing, another one is refused", async (engine) => {
    const bytes = noise(1, 1000)
    const first = await sendShard(engine, shardOf(bytes, { index: 1, data_shards: 4 }))
    const again = shardOf(bytes, { index: 1, data_shards: 4 }, { created_at: 400n })
    assert.deepEqual(await sendShard(engine, again, 2000n), { ...first, created: false })
    for (const shard of [
      { index: 2, data_shards: 4 },
      { index: 1, data_shards: 8 },
    ]) {
      const other = shardOf(bytes, shard)
      assert.equal(await tagIn(() => sendShard(engine, other)), "BlobAlreadyExists")
    }
    const whole = wholeOf(bytes)
    assert.equal(await tagIn(() => send(engine, whole, bytes)), "BlobAlreadyExists")
    assert.deepEqual(await kindsOf(engine), ["stored"])
  })
  promised("a whole copy answers for any shard", async (engine) => {
    for (const size of [1000, 100_000]) {
      const bytes = noise(1, size)
      const whole = await send(engine, wholeOf(bytes), bytes)
      const order = shardOf(bytes, { index: 3, data_shards: 8 })
      assert.deepEqual(await sendShard(engine, order), { ...whole, created: false })
    }
  })
  promised("a put of a blob that is here as a shard is a repetition of it", async (engine) => {
    const bytes = noise(1, 1000)
    const order = shardOf(bytes, { index: 1, data_shards: 4 })
    await sendShard(engine, order)
    const unspecified = { ...putOrder, policy: "REPLICATION_POLICY_UNSPECIFIED" } as const
    const { created, meta } = await engine.put(unspecified, [bytes], 2000n)
    assert.equal(created, false)
    assert.deepEqual(meta, await engine.stat(order.id))
    assert.equal(await tagIn(() => engine.put(putOrder, [bytes], 3000n)), "BlobAlreadyExists")
  })
  promised("an order that cannot be is refused", async (engine) => {
    const bytes = noise(1, 1000)
    const wrong = [
      { index: 6, data_shards: 4 },
      { index: -1, data_shards: 4 },
      { index: 0, data_shards: 0 },
      { index: 0.5, data_shards: 4 },
    ]
    for (const shard of wrong) {
      const order = shardOf(bytes, shard)
      assert.equal(await tagIn(() => send(engine, order, noise(1, 512))), "BlobStoreFailed")
    }
    const order = { ...wholeOf(bytes), checksum: "ab" }
    assert.equal(await tagIn(() => send(engine, order, bytes)), "BlobStoreFailed")
    await assertEmpty(engine)
  })
}

const lengths = (promised: Promised) => {
  promised("a copy is as long as its blob's size wants, and as was announced", async (engine) => {
    for (const size of [1000, 100_000]) {
      const bytes = noise(1, size)
      const orders = [wholeOf(bytes), shardOf(bytes, { index: 0, data_shards: 4 })]
      for (const order of orders) {
        const wanted = copyBytes(size, order.shard)
        const data = order.shard ? shardBytes(order) : bytes
        const short = data.subarray(0, wanted - 1)
        const long = Buffer.concat([data, Buffer.alloc(1)])
        for (const [part, announced] of [
          [short, short.length],
          [short, wanted],
          [long, wanted],
          [long, long.length],
        ] as const) {
          const sent = () => send(engine, order, part, 1000n, announced)
          assert.equal(await tagIn(sent), "BlobStoreFailed")
        }
      }
    }
    await assertEmpty(engine)
  })
  promised(
    "a copy that was given up leaves nothing, and its room is free again",
    async (engine) => {
      const bytes = noise(1, 150_000)
      for (let times = 0; times < 5; times++) {
        const receiving = engine.receive(wholeOf(bytes), bytes.length)
        await receiving.write(bytes.slice(0, 100_000))
        await receiving.abort()
        await receiving.abort()
        assert.notEqual(await tagIn(() => receiving.finish(1000n)), "none")
      }
      await assertEmpty(engine)
      await send(engine, wholeOf(bytes), bytes)
      assert((await getAll(engine, idOf(bytes))).equals(bytes))
    },
    { capacity_bytes: 200_000 },
  )
  promised(
    "a copy for which there is no room is refused",
    async (engine) => {
      for (const size of [1500, 100_000]) {
        const bytes = noise(1, size)
        const sent = () => send(engine, wholeOf(bytes), bytes)
        assert.equal(await tagIn(sent), "BlobCapacityExceeded")
      }
      await assertEmpty(engine)
      const bytes = noise(1, 1000)
      await send(engine, wholeOf(bytes), bytes)
      const more = noise(2, 500)
      assert.equal(await tagIn(() => send(engine, wholeOf(more), more)), "BlobCapacityExceeded")
    },
    { capacity_bytes: 1400 },
  )
  promised("two who send the same at once store it once", async (engine) => {
    const bytes = noise(1, 100_000)
    const order = wholeOf(bytes)
    const both = await Promise.all([send(engine, order, bytes), send(engine, order, bytes)])
    assert.equal(both.filter(({ created }) => created).length, 1)
    assert.equal(hashOf(await getAll(engine, order.id)), order.checksum)
    assert.deepEqual(await kindsOf(engine), ["stored"])
  })
}

/**
 * Declares the contract's tests for the engines that `make` opens, each empty, with a clock at
 * zero.
 */
export const nodeEngineContract = (
  name: string,
  make: (limits: NodeEngineLimits) => Promise<NodeEngine>,
) => {
  describe(name, () => {
    const promised: Promised = (sentence, body, limits = {}) => {
      it(sentence, async () => {
        await body(await make(limits))
      })
    }
    for (const part of [wholes, shards, lengths, deletions, releases, renewals, listing, stages]) {
      part(promised)
    }
  })
}
