/**
 * Synchronous reads, and the reused memory of windows: neither ever exposes bytes of another blob.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import {
  faultTag,
  flipBit,
  kib,
  mib,
  put,
  readAll,
  remove,
  type Volume,
  withVolume,
} from "./volume-folder.ts"

const atHand = ({ engine }: Volume, id: BlobId) => engine.getCached?.(id)

/** A small blob that was read twice, so that it can be read synchronously. */
const readTwice = async (volume: Volume, size: number, seed = size) => {
  const bytes = noise(seed, size)
  const { id } = await put(volume, bytes)
  assert.equal(atHand(volume, id), undefined, "it was never read")
  for (let n = 0; n < 2; n++) assert((await readAll(volume, id)).equals(bytes))
  return { id, bytes }
}

describe("a synchronous read", () => {
  it("returns what get returns, with all metadata", () =>
    withVolume(async (volume) => {
      for (const size of [0, 1, 4096, 60 * kib]) {
        const { id, bytes } = await readTwice(volume, size)
        const { data, meta, windows } = atHand(volume, id) ?? assert.fail("it is not at hand")
        assert(data && Buffer.from(bytes).equals(data))
        assert.deepEqual(meta, (await volume.engine.get(id, {}, 7n)).meta)
        let read = 0
        for await (const window of windows()) read += window.length
        assert.equal(read, size)
      }
    }))

  it("is only for a small blob that was read recently", () =>
    withVolume(async (volume) => {
      for (const size of [100 * kib, 700 * kib, 3 * mib]) {
        const { id } = await readTwice(volume, size)
        assert.equal(atHand(volume, id), undefined, `${size}`)
      }
    }))

  it("returns nothing once the blob is deleted", () =>
    withVolume(async (volume) => {
      const { id } = await readTwice(volume, 4096)
      await remove(volume, id)
      assert.equal(atHand(volume, id), undefined)
      assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobNotFound")
    }))

  it("returns nothing for a corrupt blob, which get then quarantines", () =>
    withVolume(async (volume) => {
      const { id, bytes } = await readTwice(volume, 4096)
      flipBit(volume.dir, bytes.subarray(0, 64))
      assert.equal(atHand(volume, id), undefined)
      assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobCorrupt")
      assert.equal(atHand(volume, id), undefined)
      assert.equal((await volume.engine.usage()).quarantined, 1)
    }))

  it("returns nothing for a blob that is hidden on a read-only volume", () =>
    withVolume(async (volume) => {
      const { id, bytes } = await readTwice(volume, 4096)
      flipBit(volume.dir, bytes.subarray(0, 64))
      volume.hooks.datasync = () => Promise.reject(new Error("EIO"))
      await faultTag(put(volume, noise(2, 10)))
      assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobCorrupt")
      // The disk returns the right bytes again.
      flipBit(volume.dir, bytes.subarray(1, 64), -1)
      assert.equal(atHand(volume, id), undefined)
    }))

  it("keeps its bytes, however many reads follow", () =>
    withVolume(async (volume) => {
      const { id, bytes } = await readTwice(volume, 4096)
      const { data } = atHand(volume, id) ?? assert.fail("it is not at hand")
      const { id: other } = await readTwice(volume, 10 * kib)
      // More than the shared memory of small reads holds.
      for (let n = 0; n < 60; n++) atHand(volume, other)
      assert(data && Buffer.from(bytes).equals(data))
    }))
})

/** Starts a read of all windows. */
const windowsOf = async (volume: Volume, id: BlobId) => {
  const { windows, recycle: giveBack } = await volume.engine.get(id, {}, 7n)
  return { windows: windows(), giveBack: giveBack ?? assert.fail("nothing can be given back") }
}

describe("a window's memory", () => {
  for (const { size, windows_held, why } of [
    { size: 5 * mib, windows_held: 5, why: "all that are read ahead" },
    // Two windows of a larger blob are read ahead, and one is being consumed.
    { size: 17 * mib, windows_held: 3, why: "three of a blob that is not" },
  ]) {
    it(`is reused by later readers once it is returned: ${why}`, () =>
      withVolume(async (volume) => {
        const bytes = noise(1, size)
        const { id } = await put(volume, bytes)
        const seen = new Set<ArrayBufferLike>()
        for (let n = 0; n < 3; n++) {
          const { windows, giveBack } = await windowsOf(volume, id)
          let read = 0
          for await (const window of windows) {
            assert(Buffer.from(window).equals(bytes.subarray(read, read + window.length)))
            read += window.length
            seen.add(window.buffer)
            giveBack(window)
          }
          assert.equal(read, bytes.length)
        }
        // The last piece of each read is not a whole window.
        assert(seen.size <= windows_held + 3, `${seen.size} pieces of memory`)
      }))
  }

  it("belongs to its reader until then, and never to two readers", () =>
    withVolume(async (volume) => {
      const [one, other] = [noise(1, 4 * mib), noise(2, 4 * mib)]
      const [{ id }, { id: other_id }] = [await put(volume, one), await put(volume, other)]
      const first = await windowsOf(volume, id)
      const kept: Array<Uint8Array> = []
      for await (const window of first.windows) kept.push(window)
      const [given] = kept
      assert(given)
      // Returning it twice counts once, and memory that was never lent is ignored.
      first.giveBack(given)
      first.giveBack(given)
      first.giveBack(noise(3, 983_040))
      const second = await windowsOf(volume, other_id)
      const others: Array<Uint8Array> = []
      for await (const window of second.windows) others.push(window)
      assert(Buffer.concat(others).equals(other))
      assert(Buffer.concat(kept.slice(1)).equals(one.subarray(given.length)))
      const whole = [...kept.slice(1), ...others].filter(({ length }) => length === given.length)
      assert.equal(new Set(whole.map(({ buffer }) => buffer)).size, whole.length)
    }))

  it("is not returned by an earlier reader", () =>
    withVolume(async (volume) => {
      const [one, other] = [noise(1, 4 * mib), noise(2, 4 * mib)]
      const [{ id }, { id: other_id }] = [await put(volume, one), await put(volume, other)]
      const first = await windowsOf(volume, id)
      const given: Array<Uint8Array> = []
      for await (const window of first.windows) {
        given.push(window)
        first.giveBack(window)
      }
      const second = await windowsOf(volume, other_id)
      const others: Array<Uint8Array> = []
      for await (const window of second.windows) others.push(window)
      for (const window of given) first.giveBack(window)
      assert((await readAll(volume, id)).equals(one))
      assert(Buffer.concat(others).equals(other))
    }))
})
