/**
 * Large blobs on their way to the disk: gathered into pages, written past the page cache where
 * possible, into files that grow; and a disk that fills up meanwhile.
 */
import assert from "node:assert/strict"
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, it } from "vitest"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { seeded } from "../../../../test/world/seeded.ts"
import { volumeDisk } from "../../disk.ts"
import { spanBytes } from "../../extents/files.ts"
import {
  giveBack,
  isAligned,
  lendPiece,
  makeGatherer,
  memory_piece_bytes,
  pieceCounts,
  takePiece,
} from "../../extents/memory.ts"
import { data_start, toPages } from "../../log/format.ts"
import { tableBytes } from "../../reads/chunks.ts"
import { simulateDisk } from "../simulated/disk.ts"
import {
  faultTag,
  kib,
  mib,
  names,
  order,
  put,
  readAll,
  remove,
  withVolume,
} from "../volume-folder.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-large-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const isOfExtents = (name: string) => name.startsWith("ext-")
const full = () => Object.assign(new Error("full"), { code: "ENOSPC" })

/** Whether all memory that was ever lent is ready for use. */
const allIsBack = () => {
  const { spare, made } = pieceCounts()
  assert.equal(spare, made)
}

describe("the pieces of a large blob", () => {
  it("hold its bytes in order, whole ones page-aligned, and are reused", () => {
    const parts = fc.array(fc.oneof(fc.nat(2000), fc.nat(300_000), fc.constant(65_536)), {
      maxLength: 12,
    })
    const holds = (lengths: ReadonlyArray<number>) => {
      const pieces: Array<Uint8Array> = []
      const gatherer = makeGatherer((piece) => pieces.push(piece))
      const given = lengths.map((length, n) => noise(n, length))
      for (const part of given) gatherer.push(part)
      gatherer.flush()
      gatherer.flush()
      assert(Buffer.concat(pieces).equals(Buffer.concat(given)))
      for (const piece of pieces.slice(0, -1)) {
        assert(isAligned(piece) && piece.length === memory_piece_bytes)
      }
      // As an extent's end cuts them.
      giveBack(pieces.flatMap((piece) => [piece.subarray(0, 70_000), piece.subarray(70_000)]))
      allIsBack()
    }
    fc.assert(fc.property(parts, holds), { numRuns: 100 })
  })

  it("are returned if a blob ends early, and never twice", () => {
    const gatherer = makeGatherer(() => assert.fail("nothing is whole"))
    gatherer.push(noise(1, 1000))
    assert.notEqual(pieceCounts().spare, pieceCounts().made)
    gatherer.drop()
    gatherer.drop()
    allIsBack()
    const piece = takePiece()
    lendPiece(piece)
    giveBack([piece])
    assert.throws(() => giveBack([piece.subarray(0, 1)]), /twice/)
  })

  it("are limited to 256; further ones are allocated individually", () => {
    const pieces = Array.from({ length: 260 }, takePiece)
    assert.deepEqual(pieceCounts(), { spare: 0, made: 256 })
    assert.equal(pieces.filter(isAligned).length, 256)
    for (const piece of pieces) lendPiece(piece)
    giveBack(pieces)
    allIsBack()
    assert.equal(new Set(pieces.filter(isAligned).map(({ buffer }) => buffer)).size, 8)
  })
})

/** This process's descriptors of the file. */
const descriptors = (path: string) =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path
    } catch {
      return false
    }
  })
const isDirect = (fd: string) => {
  const [, flags = "0"] =
    /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? []
  return (Number.parseInt(flags, 8) & 0o40000) !== 0
}

/** Noise in a lent piece. */
const paged = (seed: number, length = memory_piece_bytes) => {
  const piece = takePiece().subarray(0, length)
  piece.set(noise(seed, length))
  lendPiece(piece)
  return piece
}

describe("writes past the page cache", () => {
  const mixed = () => [
    { name: "whole pages", parts: [paged(1), paged(2)], position: 8192 },
    { name: "an end that is none", parts: [paged(3), paged(4, 5000), noise(5, 7)], position: 4096 },
    { name: "bytes of elsewhere first", parts: [noise(6, 4096), paged(7)], position: 0 },
    { name: "a place that is none", parts: [paged(8)], position: 100 },
    { name: "less than a page", parts: [paged(9, 4095)], position: 4096 },
  ]
  const disks = [
    { kind: "the real disk", disk: volumeDisk, dir: folder },
    { kind: "the simulated disk", disk: simulateDisk(seeded(1)).disk, dir: "/v" },
  ]
  for (const { kind, disk, dir } of disks) {
    it(`have the same result as other writes, on ${kind}`, async () => {
      const file = await disk.create(join(dir, "mixed"))
      for (const { name, parts, position } of mixed()) {
        // The file is read before and after.
        await file.write([noise(99, 600_000)], 0)
        const expected = Buffer.from(await file.read(0, 600_000))
        expected.set(Buffer.concat(parts), position)
        await file.write(parts, position)
        assert(Buffer.from(await file.read(0, 600_000)).equals(expected), name)
        await file.datasync()
        assert(Buffer.from(file.readSync(0, 600_000)).equals(expected), name)
        giveBack(parts)
      }
      allIsBack()
      await file.close()
    })
  }

  it("use a descriptor of their own, which is closed with the file", async () => {
    const path = join(folder, "descriptors")
    const file = await volumeDisk.create(`${path}.tmp`)
    await volumeDisk.rename(`${path}.tmp`, path)
    await file.write([noise(1, 4096)], 0)
    assert.equal(descriptors(path).length, 1)
    const parts = [0, 1, 2, 3].map((n) => paged(n))
    await Promise.all(parts.map((part, n) => file.write([part], n * memory_piece_bytes)))
    const open = descriptors(path)
    // A file system without direct I/O, such as tmpfs, opens no second one.
    if (open.length > 1) assert.deepEqual([open.length, open.filter(isDirect).length], [2, 1])
    for (const n of [0, 1, 2, 3]) {
      const read = await file.read(n * memory_piece_bytes, memory_piece_bytes)
      assert(Buffer.from(read).equals(noise(n, memory_piece_bytes)))
    }
    await file.close()
    assert.equal(descriptors(path).length, 0)
    await assert.rejects(file.write(parts, 0), { code: "EBADF" })
    giveBack(parts)
  })
})

/** Lengths of the extent files with content, in whole pages. */
const extentFiles = (dir: string) =>
  names(dir)
    .filter(isOfExtents)
    .map((name) => toPages(statSync(join(dir, name)).size))
    .filter((bytes) => bytes > data_start)

describe("extent files", () => {
  it("take disk space for what was written, and reuse it", async () => {
    await withVolume(async (volume) => {
      const { id } = await put(volume, noise(1, mib))
      const size = data_start + spanBytes(mib)
      assert.deepEqual(extentFiles(volume.dir), [size])
      await remove(volume, id)
      await put(volume, noise(2, 700 * kib))
      await put(volume, noise(3, 300 * kib))
      assert.deepEqual(extentFiles(volume.dir), [size])
      const again = await volume.reopen()
      const more = await put(again, noise(4, 300 * kib))
      assert(extentFiles(volume.dir)[0] ?? 0 > size)
      assert((await readAll(again, more.id)).equals(noise(4, 300 * kib)))
      allIsBack()
    })
  })

  it("end with their table in one write, padded to a page where possible", async () => {
    await withVolume(async (volume) => {
      const writes: Array<ReadonlyArray<Uint8Array>> = []
      volume.hooks.write = (name, position, parts) => {
        if (isOfExtents(name) && position >= data_start) writes.push(parts)
      }
      const take = () => writes.splice(0).map((parts) => [Buffer.concat(parts), parts] as const)
      // The second time in memory with old content.
      for (const seed of [1, 2]) {
        const { id } = await put(volume, noise(seed, mib))
        const [[bytes, parts] = assert.fail("nothing was written"), ...more] = take()
        assert.deepEqual([more.length, parts.length], [0, 5])
        assert(parts.every(isAligned))
        assert.equal(bytes.length, spanBytes(mib))
        assert(bytes.subarray(mib + tableBytes(mib)).every((byte) => byte === 0))
        assert((await readAll(volume, id)).equals(noise(seed, mib)))
      }
      const { id } = await put(volume, noise(3, mib - 1))
      assert.deepEqual(
        take().map(([bytes]) => bytes.length),
        [mib - 1 + tableBytes(mib)],
      )
      assert((await readAll(volume, id)).equals(noise(3, mib - 1)))
      allIsBack()
    })
  })

  it("hold only the bytes that arrived, regardless of the announced maximum", async () => {
    await withVolume(async (volume) => {
      const upload = volume.engine.upload(order, 1900 * kib)
      await upload.write(noise(1, 900 * kib))
      const { id } = await upload.finish(9n)
      // In the log it is less than a page.
      assert.equal(Math.floor(volume.engine.status().live_bytes / 4096), 226)
      assert((await readAll(volume, id)).equals(noise(1, 900 * kib)))
      // The space after it is free: the next blob starts there.
      await put(volume, noise(2, 900 * kib))
      assert.deepEqual(extentFiles(volume.dir), [data_start + 2 * 904 * kib])
      allIsBack()
    })
  })
})

describe("a disk that fills up during the write of a large blob", () => {
  it("refuses that blob without a trace, and other operations continue", async () => {
    for (const failing of [1, 2, 3]) {
      await withVolume(
        async (volume) => {
          const there = await put(volume, noise(1, 500 * kib))
          let writes = 0
          volume.hooks.write = (name) => {
            if (!isOfExtents(name)) return
            writes += 1
            if (writes >= failing) throw full()
          }
          const before = volume.engine.status()
          assert.equal(await faultTag(put(volume, noise(2, 3 * mib))), "BlobCapacityExceeded")
          const upload = volume.engine.upload(order, undefined)
          const streamed = async () => {
            for (const n of [3, 4, 5]) await upload.write(noise(n, mib))
            await upload.finish(9n)
          }
          assert.equal(await faultTag(streamed()), "BlobCapacityExceeded")
          await upload.abort()
          assert.equal(volume.engine.status().live_bytes, before.live_bytes)
          assert.equal((await volume.engine.usage()).payload_bytes, 500 * kib)
          assert.equal((await put(volume, noise(6, kib))).created, true)
          allIsBack()
          delete volume.hooks.write
          const { id } = await put(volume, noise(2, 3 * mib))
          const again = await volume.reopen()
          assert((await readAll(again, id)).equals(noise(2, 3 * mib)))
          assert((await readAll(again, there.id)).equals(noise(1, 500 * kib)))
          await again.engine.scrub()
          assert.equal((await again.engine.usage()).quarantined, 0)
        },
        { segment_bytes: 8 * mib },
      )
    }
  })

  it("reuses the space of deleted blobs, in pieces too", async () => {
    await withVolume(
      async (volume) => {
        const ids = []
        for (const seed of [1, 2, 3, 4, 5]) ids.push((await put(volume, noise(seed, mib))).id)
        const [size = 0] = extentFiles(volume.dir)
        volume.hooks.create = full
        volume.hooks.write = (name, position) => {
          if (isOfExtents(name) && position >= size) throw full()
        }
        assert.equal(await faultTag(put(volume, noise(9, 1500 * kib))), "BlobCapacityExceeded")
        for (const id of [ids[1], ids[3]]) if (id) await remove(volume, id)
        const { id } = await put(volume, noise(9, 1500 * kib))
        assert((await readAll(volume, id)).equals(noise(9, 1500 * kib)))
        assert.deepEqual(extentFiles(volume.dir), [size])
        allIsBack()
      },
      { segment_bytes: 8 * mib },
    )
  })
})
