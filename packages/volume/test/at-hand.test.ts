/**
 * What a volume answers without waiting, and the memory that windows are read into: neither ever
 * shows bytes that are not the blob's.
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

const atHand = ({ engine }: Volume, id: BlobId) => engine.getNow?.(id)

/** A blob that was read twice, so that it is at hand where it is small. */
const readTwice = async (volume: Volume, size: number, seed = size) => {
  const bytes = noise(seed, size)
  const { id } = await put(volume, bytes)
  assert.equal(atHand(volume, id), undefined, "it was never read")
  for (let n = 0; n < 2; n++) assert((await readAll(volume, id)).equals(bytes))
  return { id, bytes }
}

describe("a blob at hand", () => {
  it("is what a get answers, with all that is known of it", () =>
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

  it("is small, and was read lately", () =>
    withVolume(async (volume) => {
      for (const size of [100 * kib, 700 * kib, 3 * mib]) {
        const { id } = await readTwice(volume, size)
        assert.equal(atHand(volume, id), undefined, `${size}`)
      }
    }))

  it("is none any more once it was deleted", () =>
    withVolume(async (volume) => {
      const { id } = await readTwice(volume, 4096)
      await remove(volume, id)
      assert.equal(atHand(volume, id), undefined)
      assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobNotFound")
    }))

  it("is none where it rotted, and a get sets it aside as ever", () =>
    withVolume(async (volume) => {
      const { id, bytes } = await readTwice(volume, 4096)
      flipBit(volume.dir, bytes.subarray(0, 64))
      assert.equal(atHand(volume, id), undefined)
      assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobCorrupt")
      assert.equal(atHand(volume, id), undefined)
      assert.equal((await volume.engine.usage()).quarantined, 1)
    }))

  it("is none where it is hidden, since it cannot be taken out", () =>
    withVolume(async (volume) => {
      const { id, bytes } = await readTwice(volume, 4096)
      flipBit(volume.dir, bytes.subarray(0, 64))
      volume.hooks.datasync = () => Promise.reject(new Error("EIO"))
      await faultTag(put(volume, noise(2, 10)))
      assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobCorrupt")
      // The disk gives the right bytes again.
      flipBit(volume.dir, bytes.subarray(1, 64), -1)
      assert.equal(atHand(volume, id), undefined)
    }))

  it("keeps its bytes, however many are read after it", () =>
    withVolume(async (volume) => {
      const { id, bytes } = await readTwice(volume, 4096)
      const { data } = atHand(volume, id) ?? assert.fail("it is not at hand")
      const { id: other } = await readTwice(volume, 10 * kib)
      // More than the small reads' shared memory has room for.
      for (let n = 0; n < 60; n++) atHand(volume, other)
      assert(data && Buffer.from(bytes).equals(data))
    }))
})

/** Reads all windows; each is looked at and given back as `use` says. */
const windowsOf = async (volume: Volume, id: BlobId) => {
  const { windows, giveBack } = await volume.engine.get(id, {}, 7n)
  return { windows: windows(), giveBack: giveBack ?? assert.fail("nothing can be given back") }
}

describe("a window's memory", () => {
  for (const { size, windows_held, why } of [
    { size: 5 * mib, windows_held: 5, why: "all that are read ahead" },
    // Two of a larger blob are read ahead, and one is handed on.
    { size: 17 * mib, windows_held: 3, why: "three of a blob that is not" },
  ]) {
    it(`is used again by whoever reads next, once it was given back: ${why}`, () =>
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
        // The last piece of each time is no window.
        assert(seen.size <= windows_held + 3, `${seen.size} pieces of memory`)
      }))
  }

  it("stays its reader's until then, and is never two readers'", () =>
    withVolume(async (volume) => {
      const [one, other] = [noise(1, 4 * mib), noise(2, 4 * mib)]
      const [{ id }, { id: other_id }] = [await put(volume, one), await put(volume, other)]
      const first = await windowsOf(volume, id)
      const kept: Array<Uint8Array> = []
      for await (const window of first.windows) kept.push(window)
      const [given] = kept
      assert(given)
      // Said twice, it is given once; and what was never lent is none of its memory.
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

  it("is not given back by who had it before", () =>
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
