/** Compaction: mostly dead files are recycled, and live data stays intact. */
import assert from "node:assert/strict"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { describe, it, vi } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  faultTag,
  flipBit,
  kib,
  mib,
  names,
  order,
  put,
  readAll,
  remove,
  type Volume,
  withVolume,
} from "../volume-folder.ts"

/** A file requested within seconds of the previous one would be longer. */
const makeNow = () => {
  let now = 0
  return () => {
    now += 60_000
    return now
  }
}
const options = { segment_bytes: mib, capacity_bytes: 512 * mib, now: makeNow() }
type Blobs = Map<BlobId, Uint8Array>

const fill = async (volume: Volume, count: number, sizeOf: (seed: number) => number) => {
  const blobs: Blobs = new Map()
  const putOne = async (seed: number) => {
    const bytes = noise(seed, sizeOf(seed))
    blobs.set((await put(volume, bytes)).id, bytes)
  }
  for (let seed = 0; seed < count; seed += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, n) => putOne(seed + n)))
  }
  return blobs
}

/** Deletes all but every `keep`th blob. Returns the deleted ones. */
const thinOut = async (volume: Volume, blobs: Blobs, keep: number) => {
  const gone = Array.from(blobs.keys()).filter((_, n) => n % keep !== 0)
  await Promise.all(gone.map((id) => remove(volume, id)))
  for (const id of gone) blobs.delete(id)
  return gone
}

const acknowledgeAll = async ({ engine }: Volume) => {
  for (;;) {
    const facts = await engine.scan(0, 1000)
    const last = facts.at(-1)
    if (!last) return
    await engine.acknowledge(last.cursor)
  }
}

const compactAll = async ({ engine }: Volume) => {
  const total = { log_files: 0, extent_files: 0 }
  for (let round = 0; round < 20; round++) {
    const { log_files, extent_files } = await engine.compact()
    total.log_files += log_files
    total.extent_files += extent_files
  }
  return total
}

const holdsAll = async (volume: Volume, blobs: Blobs, gone: ReadonlyArray<BlobId>) => {
  for (const [id, bytes] of blobs) assert((await readAll(volume, id)).equals(bytes), id)
  for (const id of gone) {
    assert.equal(await faultTag(readAll(volume, id)), "BlobNotFound")
    assert((await volume.engine.tombstone(id)) !== undefined, "its tombstone stays")
  }
  const { payload_bytes, blob_count } = await volume.engine.usage()
  const bytes = Array.from(blobs.values()).reduce((sum, { length }) => sum + length, 0)
  assert.deepEqual([payload_bytes, blob_count], [bytes, blobs.size])
}

const loseCheckpoints = (dir: string) => {
  for (const name of names(dir).filter((one) => /^(checkpoint|clean)/.test(one))) {
    rmSync(join(dir, name))
  }
}

describe("compaction", () => {
  it("removes retired extent files, however many there are at once", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 8, (seed) => 900 * kib + seed)
      const files = () => names(volume.dir).filter((one) => one.startsWith("ext-")).length
      const used = files()
      await thinOut(volume, blobs, 100)
      await acknowledgeAll(volume)
      await compactAll(volume)
      assert(used > 5, `${used} files`)
      // In addition to one with a blob, and the one that the blob was moved from.
      await vi.waitFor(() => assert(files() <= 2, `${files()} of ${used} files`))
    }, options)
  })

  it("retires mostly dead log files; blobs, times and tombstones stay", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 300, (seed) => (seed % 10 === 0 ? 0 : 20 * kib + seed))
      const metas = new Map(
        await Promise.all(
          Array.from(blobs.keys(), async (id) => [id, await volume.engine.stat(id)] as const),
        ),
      )
      const gone = await thinOut(volume, blobs, 5)
      await acknowledgeAll(volume)
      const before = volume.engine.status().log_files
      const { log_files } = await compactAll(volume)
      assert(log_files >= 3, `${log_files} log files`)
      assert(volume.engine.status().log_files < before)
      await holdsAll(volume, blobs, gone)
      for (const id of blobs.keys()) assert.deepEqual(await volume.engine.stat(id), metas.get(id))
      assert.deepEqual(await volume.engine.scan(0, 10), [])
      const again = await volume.reopen()
      await holdsAll(again, blobs, gone)
      await again.engine.close()
      loseCheckpoints(volume.dir)
      await holdsAll(await again.reopen(), blobs, gone)
    }, options)
  })

  it("keeps log files with unacknowledged facts", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 200, () => 20 * kib)
      const gone = await thinOut(volume, blobs, 10)
      const facts = await volume.engine.scan(0, 1000)
      assert.equal((await compactAll(volume)).log_files, 0)
      assert.deepEqual(await volume.engine.scan(0, 1000), facts)
      await acknowledgeAll(volume)
      assert((await compactAll(volume)).log_files > 0)
      await holdsAll(volume, blobs, gone)
    }, options)
  })

  it("retires extent files whose content fits into others", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 40, (seed) => 300 * kib + 1000 * seed)
      const gone = await thinOut(volume, blobs, 6)
      const before = volume.engine.status().extent_files
      const { extent_files } = await compactAll(volume)
      assert(extent_files >= 3, `${extent_files} files of extents`)
      assert(volume.engine.status().extent_files < before)
      await holdsAll(volume, blobs, gone)
      await volume.engine.scrub()
      assert.equal((await volume.engine.usage()).quarantined, 0)
      const again = await volume.reopen()
      await holdsAll(again, blobs, gone)
      await again.engine.close()
      loseCheckpoints(volume.dir)
      const rebuilt = await again.reopen()
      await holdsAll(rebuilt, blobs, gone)
      // The free space has no owner: new blobs damage none of the old ones.
      const more = await fill(rebuilt, 20, (seed) => 700 * kib + seed)
      await holdsAll(rebuilt, new Map([...blobs, ...more]), gone)
    }, options)
  })

  it("lets a reader finish, and puts and deletes continue", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 100, (seed) => (seed % 5 === 0 ? 1500 * kib : 9000) + seed)
      const gone = await thinOut(volume, blobs, 3)
      await acknowledgeAll(volume)
      const [large] = Array.from(blobs).filter(([, { length }]) => length > mib)
      const [id, bytes] = large ?? assert.fail("no large blob")
      const { windows } = await volume.engine.get(id, {}, 7n)
      const found: Array<Uint8Array> = []
      let more: Blobs = new Map()
      for await (const window of windows()) {
        if (found.length === 0) {
          const work = compactAll(volume)
          more = await fill(volume, 60, (seed) => (seed % 9 === 0 ? 400 * kib : 5000) + 7 * seed)
          gone.push(...(await thinOut(volume, more, 2)))
          await work
        }
        found.push(window)
      }
      assert(Buffer.concat(found).equals(bytes))
      await holdsAll(volume, new Map([...blobs, ...more]), gone)
      await holdsAll(await volume.reopen(), new Map([...blobs, ...more]), gone)
    }, options)
  })

  it("quarantines a damaged copy instead of moving it, and moves the others", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 120, (seed) => (seed < 10 ? 500 * kib : 20 * kib) + seed)
      const gone = await thinOut(volume, blobs, 4)
      await acknowledgeAll(volume)
      const small = Array.from(blobs).find(([, { length }]) => length < 30 * kib)
      const large = Array.from(blobs).find(([, { length }]) => length > 30 * kib)
      for (const [id, bytes] of [small ?? assert.fail(), large ?? assert.fail()]) {
        flipBit(volume.dir, bytes.subarray(100, 140))
        blobs.delete(id)
      }
      await compactAll(volume)
      // The small one is in the oldest log file, which is emptied.
      assert((await volume.engine.usage()).quarantined >= 1)
      await volume.engine.scrub()
      assert.equal((await volume.engine.usage()).quarantined, 2)
      await holdsAll(volume, blobs, gone)
    }, options)
  })

  it("ends quietly on a read-only volume", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 120, () => 20 * kib)
      const gone = await thinOut(volume, blobs, 10)
      await acknowledgeAll(volume)
      volume.hooks.datasync = () => Promise.reject(new Error("EIO"))
      assert.deepEqual(await volume.engine.compact(), { log_files: 0, extent_files: 0 })
      delete volume.hooks.datasync
      await holdsAll(volume, blobs, gone)
      assert.equal((await volume.engine.usage()).read_only, true)
    }, options)
  })

  it("in the background empties dead files, and closing the volume waits for it", async () => {
    await withVolume(
      async (volume) => {
        const blobs = await fill(volume, 200, () => 20 * kib)
        const gone = await thinOut(volume, blobs, 10)
        await acknowledgeAll(volume)
        const before = volume.engine.status().log_files
        for (let wait = 0; wait < 1000 && volume.engine.status().log_files === before; wait++) {
          await new Promise((resolve) => setTimeout(resolve, 25))
        }
        assert(volume.engine.status().log_files < before)
        await holdsAll(await volume.reopen(), blobs, gone)
      },
      { ...options, background: true },
    )
  })

  it("ignores a blob that is deleted and put again during the move", async () => {
    await withVolume(async (volume) => {
      const blobs = await fill(volume, 120, () => 20 * kib)
      const gone = await thinOut(volume, blobs, 10)
      await acknowledgeAll(volume)
      const [id, bytes] = Array.from(blobs)[0] ?? assert.fail()
      const work = volume.engine.compact()
      await volume.engine.delete(id, order.origin, 8n)
      const { meta } = await put(volume, bytes, { labels: { again: "1" } })
      await work
      assert.deepEqual(await volume.engine.stat(id), meta)
      await holdsAll(await volume.reopen(), blobs, gone)
    }, options)
  })
})
