/**
 * Reads of a volume: nothing unverified is returned, even if the disk returns wrong bytes or the
 * blob changes meanwhile.
 */
import assert from "node:assert/strict"
import { readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, it } from "vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { decodeHead, encodeHead, type NewRecord } from "../../log/record.ts"
import { payloadSpan } from "../../reads/copies.ts"
import { damageOf } from "../../reads/damage.ts"
import { makePageCacheEstimate } from "../../reads/page-cache.ts"
import {
  faultTag,
  flipBit,
  kib,
  kinds,
  mib,
  names,
  order,
  placeOf,
  put,
  readAll,
  remove,
  type Volume,
  withVolume,
} from "../volume-folder.ts"

const sizes = {
  small: 40 * kib,
  "one window": 700 * kib,
  "two windows": mib,
  large: 3 * mib + 99,
}
const isData = (name: string) => /^(log|ext)-/.test(name)

describe("a read of a volume", () => {
  it("returns any range of any blob", async () => {
    await withVolume(async (volume) => {
      for (const size of [0, 1, 200 * kib, 700 * kib, 3 * mib + 99]) {
        const bytes = noise(size, size)
        const { id } = await put(volume, bytes)
        const near = [0, 64 * kib, 983_040, size].flatMap((border) => [
          border - 1,
          border,
          border + 1,
        ])
        const place = fc.oneof(fc.constantFrom(...near.filter((at) => at >= 0)), fc.nat(size + 10))
        const isStretch = async (offset: number, length: number) => {
          const read = await readAll(volume, id, { offset, length })
          assert(read.equals(bytes.subarray(offset, offset + length)))
        }
        const property = fc.asyncProperty(place, place, isStretch)
        await fc.assert(property, { numRuns: 30 })
      }
    })
  })

  for (const [kind, size] of Object.entries(sizes)) {
    it(`that the disk once answers wrongly is retried: ${kind}`, async () => {
      await withVolume(async (volume) => {
        const bytes = noise(1, size)
        const { id } = await put(volume, bytes)
        let times = 0
        volume.hooks.read = (name, read) => {
          if (!isData(name) || read.length < 30 * kib) return
          times += 1
          if (times === 1) read[20 * kib] = (read[20 * kib] ?? 0) ^ 1
        }
        assert((await readAll(volume, id)).equals(bytes))
        assert(times > 1)
        assert.equal((await volume.engine.usage()).quarantined, 0)
      })
    })

    it(`detects a corrupt copy, quarantines it and reports it: ${kind}`, async () => {
      await withVolume(async (volume) => {
        const bytes = noise(1, size)
        const [{ id }, other] = [await put(volume, bytes), await put(volume, noise(2, size))]
        flipBit(volume.dir, bytes.subarray(size - 40, size))
        assert.equal(await faultTag(readAll(volume, id)), "BlobCorrupt")
        const aside_at_once = names(volume.dir, "quarantine").map((name) =>
          statSync(join(volume.dir, "quarantine", name)),
        )
        assert(aside_at_once.some(({ size: bytes_aside }) => bytes_aside > size))
        assert.equal(await faultTag(readAll(volume, id)), "BlobNotFound")
        assert.equal((await readAll(volume, other.id)).length, size)
        assert.equal((await kinds(volume)).at(-1), `quarantined ${id}`)
        const { quarantined, blob_count, payload_bytes } = await volume.engine.usage()
        assert.deepEqual([quarantined, blob_count, payload_bytes], [1, 1, size])
        const [remains, ...rest] = names(volume.dir, "quarantine")
        assert.deepEqual([remains?.slice(0, 32), rest], [id, []])
        const aside = join(volume.dir, "quarantine", remains ?? "")
        // Tables separate the extents, so the content is not contiguous.
        const piece = Buffer.from(bytes.subarray(0, Math.min(size - 64, mib)))
        assert(readFileSync(aside).includes(piece))
        assert.equal(statSync(aside).mode & 0o077, 0)
        assert.equal((await put(volume, bytes)).created, true)
        assert((await readAll(volume, id)).equals(bytes))
        const again = await volume.reopen()
        assert((await readAll(again, id)).equals(bytes))
        assert.equal((await again.engine.usage()).quarantined, 1)
      })
    })
  }

  it("ignores damage outside its range, except in tables and records", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 3 * mib)
      const { id } = await put(volume, bytes)
      flipBit(volume.dir, bytes.subarray(2 * mib, 2 * mib + 40))
      const range = { offset: 10, length: mib }
      assert((await readAll(volume, id, range)).equals(bytes.subarray(10, mib + 10)))
      assert.equal(await faultTag(readAll(volume, id, { offset: 2 * mib })), "BlobCorrupt")
      const second = noise(2, 600 * kib)
      const { id: second_id } = await put(volume, second)
      // After the last bytes comes the table of their checksums.
      flipBit(volume.dir, second.subarray(-40), 40 + 3)
      assert.equal(await faultTag(readAll(volume, second_id)), "BlobCorrupt")
      const third = noise(3, 5000)
      const { id: third_id } = await put(volume, third)
      flipBit(volume.dir, Buffer.from(third_id, "hex"), 3)
      assert.equal(await faultTag(volume.engine.stat(third_id)), "BlobCorrupt")
      assert.equal(await faultTag(volume.engine.stat(third_id)), "BlobNotFound")
    })
  })

  for (const size of [600 * kib, 1 * mib, 2 * mib]) {
    it(`detects damaged checksums, as the scrub does, of ${size} bytes`, async () => {
      await withVolume(async (volume) => {
        const bytes = noise(2, size)
        const looks = [
          (id: BlobId) => readAll(volume, id),
          (id: BlobId) => readAll(volume, id, { offset: 1 }),
          () => volume.engine.scrub(),
        ]
        for (const look of looks) {
          const { id } = await put(volume, bytes)
          // After the last bytes comes the table of their checksums.
          flipBit(volume.dir, bytes.subarray(-40), 40 + 3)
          await look(id).catch(() => undefined)
          assert.equal(await faultTag(readAll(volume, id)), "BlobNotFound")
        }
      })
    })
  }

  it("yields the windows of a whole blob again, though their memory was returned", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(4, mib + 5)
      const { id } = await put(volume, bytes)
      const reading = await volume.engine.get(id, {}, 1n)
      assert.equal(reading.data, undefined)
      for (let time = 1; time <= 3; time++) {
        const parts: Array<Buffer> = []
        for await (const window of reading.windows()) {
          parts.push(Buffer.from(window))
          window.fill(0)
          reading.recycle?.(window)
        }
        assert(Buffer.concat(parts).equals(bytes))
      }
    })
  })

  it("reports which chunk of a whole blob is damaged", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(5, mib)
      const { id } = await put(volume, bytes)
      flipBit(volume.dir, bytes.subarray(700 * kib, 700 * kib + 40))
      const fault = faultOf(await volume.engine.get(id, {}, 1n).catch((cause: unknown) => cause))
      assert.equal(fault._tag, "BlobCorrupt")
      assert.match(JSON.stringify(fault), /Chunk 10 /)
    })
  })

  it("reports a copy whose file is missing as lost", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, mib)
      const { id } = await put(volume, bytes)
      const { path } = placeOf(volume.dir, bytes.subarray(0, 40))
      await volume.engine.close()
      rmSync(path)
      const again = await volume.reopen()
      assert.equal(await faultTag(readAll(again, id)), "BlobCorrupt")
      assert.equal((await kinds(again)).at(-1), `lost ${id}`)
    })
  })

  it("hides a damaged copy that cannot be removed any more", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 700 * kib)
      const { id } = await put(volume, bytes)
      flipBit(volume.dir, bytes.subarray(0, 40))
      volume.hooks.datasync = () => Promise.reject(new Error("EIO"))
      assert.equal(await faultTag(put(volume, noise(2, 10))), "BlobStoreReadOnly")
      assert.equal(await faultTag(readAll(volume, id)), "BlobCorrupt")
      assert.equal(await faultTag(readAll(volume, id)), "BlobNotFound")
      assert.equal(await faultTag(volume.engine.stat(id)), "BlobNotFound")
      assert.deepEqual(names(volume.dir).includes("quarantine"), false)
    })
  })

  it("detects wrong content even if all its CRCs match", () => {
    const payload = Buffer.from(noise(1, 100))
    // 32 hex characters.
    const id = "0123456789abcdef0123456789abcdef" as BlobId
    const record: Omit<NewRecord, "crcs"> = {
      kind: "blob",
      is_moved: false,
      is_large: false,
      id,
      hash: "ab".repeat(32),
      shard: undefined,
      since: 0n,
      cluster_at: 0n,
      put_at: 0n,
      policy: "REPLICATION_POLICY_NONE",
      size: 100,
      at: 1n,
      cursor: 1,
      origin: order.origin,
      labels: {},
      payload_bytes: 100,
      extents: [],
      freed: [],
    }
    const make = (crcs: ReadonlyArray<number>) => {
      const bytes = Buffer.alloc(4096)
      const length = encodeHead(bytes, 0, { ...record, crcs }, 7)
      return decodeHead(bytes.subarray(0, length), 0, 7) ?? assert.fail("no head")
    }
    const whole = { start: 0, end: 100 }
    const damageIn = (crcs: ReadonlyArray<number>, span: typeof whole) => {
      try {
        payloadSpan({ head: make(crcs), payload }, span)
        return undefined
      } catch (cause) {
        return damageOf(cause)?.detail
      }
    }
    const crc = crcOf(payload)
    assert.match(damageIn([crc], whole) ?? "", /checksum\.$/)
    assert.match(damageIn([crc ^ 1], whole) ?? "", /checksum\.$/)
    assert.equal(damageIn([crc], { start: 1, end: 50 }), undefined)
    assert.match(damageIn([crc ^ 1], { start: 1, end: 50 }) ?? "", /checksums\.$/)
  })
})

const crcOf = (bytes: Uint8Array) => {
  let state = ~0
  for (const byte of bytes) {
    state ^= byte
    for (let bit = 0; bit < 8; bit++) state = (state >>> 1) ^ (state & 1 ? 0x82f63b78 : 0)
  }
  return ~state >>> 0
}

/** Reads a blob, with an action after the first window. */
const readWith = async (volume: Volume, id: BlobId, meanwhile: () => Promise<unknown>) => {
  const { windows } = await volume.engine.get(id, {}, 7n)
  const found: Array<Uint8Array> = []
  for await (const window of windows()) {
    if (found.length === 0) await meanwhile()
    found.push(window)
  }
  return Buffer.concat(found)
}

describe("a long read", () => {
  it("continues for a deleted blob, though others need its space", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 5 * mib)
      const { id } = await put(volume, bytes)
      const meanwhile = async () => {
        await remove(volume, id)
        for (const seed of [2, 3, 4]) await put(volume, noise(seed, 3 * mib))
        assert.equal(await faultTag(volume.engine.get(id, {}, 7n)), "BlobNotFound")
      }
      assert((await readWith(volume, id, meanwhile)).equals(bytes))
      const { live_bytes, dead_bytes } = volume.engine.status()
      const files = volume.engine.status().extent_files
      await put(volume, noise(5, 4 * mib))
      assert(dead_bytes > 5 * mib - 3 * 8192, "its room is free when it has ended")
      assert.equal(volume.engine.status().extent_files, files)
      assert(volume.engine.status().live_bytes > live_bytes)
    })
  })

  it("that is abandoned frees the space of its blob", async () => {
    await withVolume(async (first) => {
      const { id } = await put(first, noise(1, 5 * mib))
      // Reopened, it creates no file in the background that would count too.
      const volume = await first.reopen()
      const free = volume.engine.status().dead_bytes
      const { windows } = await volume.engine.get(id, {}, 7n)
      for await (const window of windows()) {
        await remove(volume, id)
        // The log has its batches, but the blob's own space is pinned.
        assert(volume.engine.status().dead_bytes < free + mib)
        assert(window.length > 0)
        break
      }
      assert(volume.engine.status().dead_bytes >= free + 5 * mib)
    })
  })

  it("detects damage in a later window before it returns that one", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 5 * mib)
      const { id } = await put(volume, bytes)
      flipBit(volume.dir, bytes.subarray(4 * mib, 4 * mib + 40))
      const { windows } = await volume.engine.get(id, {}, 7n)
      let read = 0
      const all = async () => {
        for await (const window of windows()) {
          assert(Buffer.compare(window, bytes.subarray(read, read + window.length)) === 0)
          read += window.length
        }
      }
      assert.equal(await faultTag(all()), "BlobCorrupt")
      assert(read > 0 && read <= 4 * mib)
    })
  })

  it("can be repeated, and finds a blob that was put again", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 3 * mib)
      const { id } = await put(volume, bytes)
      const { windows } = await volume.engine.get(id, {}, 7n)
      const all = async () => {
        const found: Array<Uint8Array> = []
        for await (const window of windows()) found.push(window)
        return Buffer.concat(found)
      }
      assert((await all()).equals(bytes))
      await remove(volume, id)
      assert.equal(await faultTag(all()), "BlobNotFound")
      await put(volume, noise(2, mib))
      await put(volume, bytes)
      assert((await all()).equals(bytes))
    })
  })
})

describe("the page-cache estimate", () => {
  it("counts a record from the second read on, unless it is large or many reads followed", () => {
    const { noteRead } = makePageCacheEstimate()
    const at = (position: number, bytes = 4096) => ({ file: 1, position, bytes })
    assert.equal(noteRead(at(8192)), false)
    assert.equal(noteRead(at(8192)), true)
    assert.equal(noteRead({ ...at(8192), file: 2 }), false)
    assert.equal(noteRead(at(16_384)), false)
    assert.equal(noteRead(at(100_000, 200_000)), false)
    assert.equal(noteRead(at(100_000, 200_000)), false)
    const { noteRead: other } = makePageCacheEstimate()
    other(at(8192))
    for (let n = 1; n < (600 * 1024 ** 2) / 60_000; n++) other(at(8192 + 65_536 * n, 60_000))
    assert.equal(other(at(8192)), false)
  })

  it("keeps counting it among thousands of neighbouring records", () => {
    for (const bytes of [4256, 4384, 8200, 65_824]) {
      const { noteRead, isCached } = makePageCacheEstimate()
      const records = Array.from({ length: 3000 }, (_, n) => ({
        file: 1 + (n >>> 10),
        position: 8192 + bytes * (n & 1023),
        bytes,
      }))
      for (const record of records) noteRead(record)
      assert(records.filter((record) => !isCached(record)).length < 30, `${bytes} bytes`)
    }
  })
})
