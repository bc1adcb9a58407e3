/** Contract of every NodeEngine for staged bytes that belong to no blob yet. */
import assert from "node:assert/strict"
import type { PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { noise } from "./engine-bytes.ts"
import type { Promised } from "./node-engine.ts"
import { collect, hashOf, idOf, putOrder, send, tagIn, wholeOf } from "./node-engine-copies.ts"

/** The unused part of the capacity, in bytes. */
const roomOf = async (engine: NodeEngine) => {
  const { capacity_bytes, used_bytes } = await engine.usage()
  return capacity_bytes - used_bytes
}

const write = async (
  to: Pick<ReturnType<NodeEngine["stage"]>, "write">,
  bytes: Uint8Array,
  cut = 50_000,
) => {
  for (let at = 0; at < bytes.length; at += cut) await to.write(bytes.slice(at, at + cut))
}

const pickOf = ({ id, meta }: PutResult) => ({ id, meta })

export const stages = (promised: Promised) => {
  for (const size of [0, 1000, 100_000, 3_000_000]) {
    promised(`${size} staged bytes are read again and again, and are no blob`, async (engine) => {
      const bytes = noise(size, size)
      for (const announced of [size, undefined]) {
        const staging = engine.stage(announced)
        await write(staging, bytes)
        const staged = await staging.seal()
        const { id, checksum } = staged
        assert.deepEqual({ id, checksum }, { id: idOf(bytes), checksum: hashOf(bytes) })
        assert.equal(staged.size, size)
        for (let times = 0; times < 2; times++) {
          assert((await collect(staged.windows())).equals(bytes))
        }
        for await (const window of staged.windows()) assert(window.length <= 983_040)
        assert.deepEqual((await engine.copies("", "", 10)).copies, [])
        assert.equal((await engine.usage()).payload_bytes, 0)
        await staging.abort()
        await staging.abort()
      }
      assert.deepEqual(await engine.scan(0, 10), [])
    })
  }
  promised("an upload that turns out to be no put of this node is staged", async (engine) => {
    for (const size of [0, 1000, 100_000]) {
      const bytes = noise(size, size)
      const upload = engine.upload(putOrder, undefined)
      await write(upload, bytes)
      const staged = await upload.seal()
      assert.equal(staged.checksum, hashOf(bytes))
      assert((await collect(staged.windows())).equals(bytes))
      await upload.abort()
    }
    assert.deepEqual(await engine.scan(0, 10), [])
    assert.equal((await engine.usage()).payload_bytes, 0)
  })
  promised(
    "a put of what is stored needs no room, and is refused where it is stored no more",
    async (engine) => {
      for (const size of [1000, 30_000]) {
        const bytes = noise(size, size)
        const upload = async (announced: number | undefined) => {
          const one = engine.upload(putOrder, announced)
          try {
            await write(one, bytes, 400)
            return await one.finish(2000n)
          } finally {
            await one.abort()
          }
        }
        const first = await engine.put(putOrder, [bytes], 1000n)
        const filling = engine.stage(undefined)
        await write(filling, noise(1, await roomOf(engine)), 100_000)
        for (const announced of [size, undefined]) {
          const { id, meta, created } = await upload(announced)
          assert.deepEqual({ id, meta, created }, { ...pickOf(first), created: false })
        }
        const again = await engine.put(putOrder, [bytes], 2000n)
        assert.deepEqual(pickOf(again), pickOf(first))
        assert.equal((await engine.usage()).blob_count, 1)
        await filling.abort()
        await engine.delete(first.id, putOrder.origin, 3000n)
        const rest = engine.stage(undefined)
        await write(rest, noise(1, await roomOf(engine)), 100_000)
        assert.equal(await tagIn(() => upload(size)), "BlobCapacityExceeded")
        assert.equal(await tagIn(() => upload(undefined)), "BlobCapacityExceeded")
        await rest.abort()
      }
    },
    { capacity_bytes: 100_000 },
  )
  promised(
    "staged bytes that may be stored already are known without room, and cannot be read",
    async (engine) => {
      const stored = noise(1, 60_000)
      const staged = async (bytes: Uint8Array, announced: number | undefined) => {
        const staging = engine.stage(announced)
        try {
          await write(staging, bytes)
          return await staging.seal()
        } finally {
          await staging.abort()
        }
      }
      const filling = engine.stage(undefined)
      await write(filling, noise(3, 60_000))
      // Nothing is stored yet, so the bytes cannot be a duplicate.
      assert.equal(await tagIn(() => staged(stored, undefined)), "BlobCapacityExceeded")
      await filling.abort()
      await engine.put(putOrder, [stored], 1000n)
      for (const announced of [undefined, stored.length]) {
        for (const bytes of [stored, noise(2, 60_000)]) {
          const { id, checksum, size, windows, no_room } = await staged(bytes, announced)
          assert.deepEqual([id, checksum, size], [idOf(bytes), hashOf(bytes), bytes.length])
          assert.equal(faultOf(no_room?.cause)._tag, "BlobCapacityExceeded")
          assert.equal(await tagIn(() => collect(windows())), "BlobCapacityExceeded")
        }
      }
      const small = engine.stage(undefined)
      await write(small, noise(4, 1000))
      assert.equal((await small.seal()).no_room, undefined)
      await small.abort()
      assert.equal((await engine.usage()).blob_count, 1)
    },
    { capacity_bytes: 100_000 },
  )
  promised(
    "staged bytes take of the capacity until they are given up",
    async (engine) => {
      const bytes = noise(1, 150_000)
      for (let times = 0; times < 3; times++) {
        const staging = engine.stage(undefined)
        await write(staging, bytes)
        await staging.seal()
        const sent = () => send(engine, wholeOf(bytes), bytes)
        assert.equal(await tagIn(sent), "BlobCapacityExceeded")
        await staging.abort()
      }
      await send(engine, wholeOf(bytes), bytes)
    },
    { capacity_bytes: 200_000 },
  )
  promised(
    "no more is staged than one blob may hold",
    async (engine) => {
      const staging = engine.stage(undefined)
      assert.equal(await tagIn(() => write(staging, noise(1, 150_000))), "BlobTooLarge")
      await staging.abort()
    },
    { size_max_bytes: 100_000 },
  )
}
