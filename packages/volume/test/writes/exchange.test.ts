/**
 * Content that a volume already has: everything that it reports as present was verified, or taken
 * from the new bytes.
 *
 * Source: DECISIONS, document 1, same content again, integrity; decision 0125.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { CopyOrder, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  getAll,
  kindsOf,
  one,
  putOrder,
  readAll,
  send,
  sendShard,
  shardBytes,
  shardOf,
  wholeOf,
} from "../../../../test/contract/blob-storage/node-engine-copies.ts"
import { loseCheckpoints } from "../damaged.ts"
import { copyOf, opened } from "../opened.ts"
import { flipBit, kib, mib, type Volume, withVolume } from "../volume-folder.ts"

const small = 40 * kib
const large = 3 * mib + 99

const ways = {
  "put at once": (engine: NodeEngine, bytes: Uint8Array) => engine.put(putOrder, [bytes], 9000n),
  "put by pieces": async (engine: NodeEngine, bytes: Uint8Array) => {
    const upload = engine.upload(putOrder, undefined)
    for (let at = 0; at < bytes.length; at += 900_000) {
      await upload.write(bytes.slice(at, at + 900_000))
    }
    return upload.finish(9000n)
  },
  "sent by another node": async (engine: NodeEngine, bytes: Uint8Array) =>
    send(engine, wholeOf(bytes), bytes, 9000n),
}

/** The stored content, also after a kill, with and without a checkpoint. */
const assertSound = async ({ engine, dir }: Volume, bytes: Uint8Array, order: CopyOrder) => {
  const copy = await one(engine, order.id)
  const usage = await engine.usage()
  const data = order.shard ? shardBytes(order) : bytes
  assert((await readAll(engine, order.id)).bytes.equals(data))
  const killed = copyOf(dir)
  const rebuilt = copyOf(dir)
  loseCheckpoints(rebuilt)
  for (const folder of [killed, rebuilt]) {
    const again = await opened(folder, { segment_bytes: 2 * mib, capacity_bytes: 1024 * mib })
    assert((await readAll(again, order.id)).bytes.equals(data))
    assert.deepEqual([await one(again, order.id), await again.usage()], [copy, usage])
  }
}

describe("content that a volume already has", () => {
  for (const [how, again] of Object.entries(ways)) {
    it(`and that is corrupt is stored again if it is small: ${how}`, async () => {
      await withVolume(async (volume) => {
        const bytes = noise(1, small)
        await volume.engine.put(putOrder, [bytes], 1000n)
        assert.equal((await again(volume.engine, bytes)).created, false)
        flipBit(volume.dir, bytes.subarray(-40))
        assert.equal((await again(volume.engine, bytes)).created, true)
        assert.deepEqual(await kindsOf(volume.engine), ["stored", "quarantined", "stored"])
        assert.equal((await volume.engine.usage()).quarantined, 1)
        await assertSound(volume, bytes, wholeOf(bytes))
      })
    })

    it(`replaces the stored extents if it is large: ${how}`, async () => {
      await withVolume(async (volume) => {
        const { engine, dir } = volume
        const bytes = noise(1, large)
        const { meta } = await engine.put(putOrder, [bytes], 1000n)
        const [before, { live_bytes }] = [await engine.usage(), engine.status()]
        flipBit(dir, bytes.subarray(-40))
        assert.equal((await again(engine, bytes)).created, false)
        assert.deepEqual(await kindsOf(engine), ["stored"])
        assert.deepEqual(await engine.stat(wholeOf(bytes).id), meta)
        const { live_bytes: live_now } = engine.status()
        assert(Math.abs(live_now - live_bytes) < 4 * kib, `${live_now} of ${live_bytes} bytes`)
        // The record may be a few bytes longer.
        const { used_bytes } = before
        assert.deepEqual({ ...(await engine.usage()), used_bytes }, before)
        await assertSound(volume, bytes, wholeOf(bytes))
      })
    })
  }

  for (const size of [small, large]) {
    it(`is stored again as a corrupt shard of ${size} bytes`, async () => {
      await withVolume(async (volume) => {
        const bytes = noise(1, 4 * size)
        const order = shardOf(bytes, { index: 1, data_shards: 4 })
        await sendShard(volume.engine, order)
        assert.equal((await sendShard(volume.engine, order)).created, false)
        flipBit(volume.dir, shardBytes(order).subarray(-40))
        assert.equal((await sendShard(volume.engine, order)).created, true)
        assert.deepEqual(await kindsOf(volume.engine), ["stored", "quarantined", "stored"])
        await assertSound(volume, bytes, order)
      })
    })
  }

  it("gets the later put time, and its extents are replaced under a reader", async () => {
    await withVolume(async ({ engine }) => {
      const bytes = noise(1, large)
      const order = wholeOf(bytes)
      const { copy } = await send(engine, order, bytes)
      const reading = await engine.get(order.id, {}, 2000n)
      const windows = reading.windows()
      const parts = [(await windows.next()).value ?? assert.fail("no window")]
      for (const put_at of [400n, 700n]) await send(engine, { ...order, put_at }, bytes, 3000n)
      // The old extents may belong to another blob already, unless they are being read.
      for (const seed of [2, 3]) await engine.put(putOrder, [noise(seed, large)], 4000n)
      for await (const window of windows) parts.push(window)
      assert(Buffer.concat(parts).equals(bytes))
      assert.deepEqual(await one(engine, order.id), { ...copy, put_at: 700n, stored_at: 3000n })
      assert((await getAll(engine, order.id)).equals(bytes))
    })
  })
})
