/**
 * Puts that arrive piece by piece: their back-pressure, what they leave behind, and what they
 * refuse.
 */
import assert from "node:assert/strict"
import { blake3 } from "@napi-rs/blake-hash"
import { describe, it } from "vitest"
import type { BlobUpload, PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  faultTag,
  flipBit,
  kib,
  kinds,
  mib,
  order,
  put,
  readAll,
  type Volume,
  withVolume,
} from "../volume-folder.ts"

const cut = (bytes: Uint8Array, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
    bytes.subarray(n * size, (n + 1) * size),
  )

const writeAll = async (upload: BlobUpload, parts: ReadonlyArray<Uint8Array>) => {
  for (const part of parts) await upload.write(part)
}

const uploadOf = async (
  { engine }: Volume,
  put_order: PutOrder,
  parts: ReadonlyArray<Uint8Array>,
  announced: number | undefined,
) => {
  const upload = engine.upload(put_order, announced)
  try {
    await writeAll(upload, parts)
    return await upload.finish(9n)
  } finally {
    await upload.abort()
  }
}

const idOf = (bytes: Uint8Array) => blake3(bytes).toString("hex").slice(0, 32)
/** In the extent files: the few records of the log are less than a page. */
const liveBytes = ({ engine }: Volume) => 4096 * Math.floor(engine.status().live_bytes / 4096)

/** A promise with its resolver. */
const gate = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

const isOfExtents = (name: string) => name.startsWith("ext-")

/** Waits until the condition holds. A second is far more than it takes. */
const until = async (condition: () => boolean) => {
  for (let turn = 0; turn < 1000 && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  assert(condition(), "it did not come to that")
}

describe("an upload", () => {
  it("is the same blob however it is cut, announced or not, in one extent or many", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 5 * mib + 4321)
      for (const size of [undefined, bytes.length]) {
        for (const parts of [cut(bytes, 70_001), cut(bytes, 2 * mib), [bytes], cut(bytes, 1000)]) {
          const upload = volume.engine.upload(order, size)
          await writeAll(upload, parts)
          const { id, meta, created } = await upload.finish(9n)
          assert.deepEqual([id, meta.size, created], [idOf(bytes), BigInt(bytes.length), true])
          assert((await readAll(volume, id)).equals(bytes))
          await volume.engine.delete(id, order.origin, 10n)
          assert.equal(liveBytes(volume), 0)
        }
      }
    })
  })

  it("of every length around a boundary is read back", async () => {
    await withVolume(async (volume) => {
      const chunk = 64 * kib
      const borders = [256 * kib, 15 * chunk, mib, 2 * mib, 8 * mib]
      for (const length of borders.flatMap((border) => [border - 1, border, border + 1])) {
        const bytes = noise(length, length)
        const upload = volume.engine.upload(order, length % 2 === 0 ? length : undefined)
        await writeAll(upload, cut(bytes, 300_000))
        const { id } = await upload.finish(9n)
        assert((await readAll(volume, id)).equals(bytes), `${length} bytes`)
      }
    })
  })

  it("byte by byte, small or large, is held in few parts", async () => {
    await withVolume(async (volume) => {
      for (const size of [1000, 300 * kib]) {
        const bytes = noise(3, size)
        const upload = volume.engine.upload(order, undefined)
        for (const part of cut(bytes, 1)) {
          const wait = upload.write(part)
          if (wait) await wait
        }
        const { id } = await upload.finish(9n)
        assert((await readAll(volume, id)).equals(bytes))
      }
    })
  })

  it("makes its sender wait while four pieces are in flight, and no longer", async () => {
    await withVolume(async (volume) => {
      const { opened, open } = gate()
      let under_way = 0
      volume.hooks.write = (name) => {
        if (!isOfExtents(name)) return undefined
        under_way += 1
        return opened
      }
      const bytes = noise(4, 12 * mib)
      const upload = volume.engine.upload(order, bytes.length)
      const parts = cut(bytes, 256 * kib)
      let wait: Promise<void> | undefined
      let sent = 0
      for (; sent < parts.length && !wait; sent++) wait = upload.write(parts[sent] ?? bytes)
      assert(sent <= 24, `${sent} parts of 256 KiB were taken`)
      await until(() => under_way === 4)
      open()
      await wait
      await writeAll(upload, parts.slice(sent))
      const { id } = await upload.finish(9n)
      assert((await readAll(volume, id)).equals(bytes))
    })
  })

  it("yields to others while it takes a part of many MiB", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(5, 24 * mib)
      const upload = volume.engine.upload(order, undefined)
      let turns = 0
      let is_done = false
      const count = () => {
        turns += 1
        if (!is_done) setImmediate(count)
      }
      setImmediate(count)
      await upload.write(bytes)
      is_done = true
      assert(turns >= 23, `${turns} turns`)
      assert.equal((await upload.finish(9n)).id, idOf(bytes))
    })
  })

  it("takes parts in order after a large one that was not awaited", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(6, 5 * mib)
      const upload = volume.engine.upload(order, undefined)
      void upload.write(bytes.subarray(0, 3 * mib))
      void upload.write(bytes.subarray(3 * mib, 3 * mib + 7))
      void upload.write(bytes.subarray(3 * mib + 7))
      assert.equal((await upload.finish(9n)).id, idOf(bytes))
    })
  })
})

/** Headers, tables and index of a few blobs count too. */
const overhead = 64 * kib

describe("an upload that is not stored", () => {
  const leavesNothing = async (volume: Volume) => {
    assert.equal(liveBytes(volume), 0)
    const { blob_count, payload_bytes } = await volume.engine.usage()
    assert.deepEqual([blob_count, payload_bytes], [0, 0])
  }

  it("releases its space when it is aborted, and waits for writes in flight", async () => {
    const capacity_bytes = 4 * mib + overhead
    await withVolume(
      async (volume) => {
        const { opened, open } = gate()
        let under_way = 0
        volume.hooks.write = async (name) => {
          if (!isOfExtents(name)) return
          under_way += 1
          await opened
          under_way -= 1
        }
        const upload = volume.engine.upload(order, 4 * mib)
        void upload.write(noise(1, mib))
        await until(() => under_way > 0)
        const aborted = upload.abort().then(() => under_way)
        const other = volume.engine.upload(order, 4 * mib)
        const more = other.write(noise(2, 10))
        assert.equal(await faultTag(Promise.resolve(more)), "BlobCapacityExceeded")
        open()
        assert.equal(await aborted, 0)
        delete volume.hooks.write
        await leavesNothing(volume)
        assert.equal((await put(volume, noise(3, 4 * mib))).created, true)
      },
      { capacity_bytes },
    )
  })

  it("is refused if it has more bytes than announced, allowed or free", async () => {
    const limits = { capacity_bytes: 3 * mib, size_max_bytes: 2 * mib }
    await withVolume(async (volume) => {
      const refused = async (size: number | undefined, bytes: number) => {
        const upload = volume.engine.upload(order, size)
        const work = async () => {
          await writeAll(upload, cut(noise(1, bytes), 100_000))
          await upload.finish(9n)
        }
        const tag = await faultTag(work())
        await upload.abort()
        await leavesNothing(volume)
        return tag
      }
      assert.equal(await refused(mib, mib + 1), "BlobStoreFailed")
      assert.equal(await refused(undefined, 2 * mib + 1), "BlobTooLarge")
      assert.equal(await refused(3 * mib, 10), "BlobTooLarge")
      const held = volume.engine.upload(order, 2 * mib)
      await held.write(noise(2, 1))
      assert.equal(await refused(undefined, mib + 1), "BlobCapacityExceeded")
      assert.equal(await refused(mib + 1, 10), "BlobCapacityExceeded")
      await held.abort()
      const fewer = volume.engine.upload(order, 2 * mib)
      await writeAll(fewer, [noise(3, 600 * kib)])
      assert.equal((await fewer.finish(9n)).meta.size, BigInt(600 * kib))
      assert.equal(liveBytes(volume), 600 * kib + 4096)
    }, limits)
  })

  it("releases its extents if the content is stored, or arrives twice at once", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 700 * kib)
      const answers = await Promise.all(Array.from({ length: 5 }, () => put(volume, bytes)))
      assert.equal(answers.filter(({ created }) => created).length, 1)
      assert.deepEqual(new Set(answers.map(({ meta }) => meta.created_at)).size, 1)
      assert.equal((await put(volume, bytes)).created, false)
      assert.equal(liveBytes(volume), 704 * kib)
      const other = put(volume, bytes, { policy: "REPLICATION_POLICY_NONE" })
      assert.equal(await faultTag(other), "BlobAlreadyExists")
      // 32 hex characters.
      const expected_id = "00000000000000000000000000000000" as (typeof answers)[0]["id"]
      assert.equal(await faultTag(put(volume, noise(2, mib), { expected_id })), "BlobIdMismatch")
      assert.equal(liveBytes(volume), 704 * kib)
      assert.equal((await kinds(volume)).length, 1)
    })
  })

  it("succeeds without space if its content is stored, and is refused otherwise", async () => {
    const size = 2 * mib
    const stored = noise(1, size)
    const other = noise(2, size)
    await withVolume(
      async (volume) => {
        const { id, meta } = await put(volume, stored)
        const live_bytes = liveBytes(volume)
        const changed = { policy: "REPLICATION_POLICY_NONE" } as const
        const upload = (bytes: Uint8Array, announced: number | undefined, more = {}) =>
          uploadOf(volume, { ...order, ...more }, cut(bytes, 100_000), announced)
        for (const announced of [undefined, size, size + 10]) {
          assert.deepEqual(await upload(stored, announced), { id, meta, created: false })
          const named = await upload(stored, announced, { expected_id: id })
          assert.deepEqual(named, { id, meta, created: false })
          const refused = (bytes: Uint8Array, more = {}) => faultTag(upload(bytes, announced, more))
          assert.equal(await refused(other), "BlobCapacityExceeded")
          assert.equal(await refused(stored, changed), "BlobAlreadyExists")
          assert.equal(await refused(stored, { if_none_match: true }), "BlobAlreadyExists")
          assert.equal(await refused(other, { expected_id: id }), "BlobIdMismatch")
        }
        assert.deepEqual(await put(volume, stored), { id, meta, created: false })
        assert.equal(liveBytes(volume), live_bytes)
        assert.equal((await volume.engine.usage()).payload_bytes, size)
        assert.equal((await kinds(volume)).length, 1)
        assert((await readAll(volume, id)).equals(stored))
        assert.equal((await put(volume, noise(3, mib))).created, true)
      },
      { capacity_bytes: 3 * mib + overhead },
    )
  })

  it("releases its space to others as soon as its own bytes do not fit", async () => {
    await withVolume(
      async (volume) => {
        const stored = noise(1, 3 * mib)
        const { id, meta } = await put(volume, stored)
        const one = volume.engine.upload(order, undefined)
        await writeAll(one, cut(stored.subarray(0, 2 * mib + overhead), 70_000))
        // Writes in flight finish before the space is released.
        let tag: string | undefined = "not called"
        for (let turn = 0; turn < 500 && tag !== undefined; turn++) {
          tag = await faultTag(put(volume, noise(2, 2 * mib)))
        }
        assert.equal(tag, undefined)
        await writeAll(one, [stored.subarray(2 * mib + overhead)])
        assert.deepEqual(await one.finish(9n), { id, meta, created: false })
        assert((await readAll(volume, id)).equals(stored))
      },
      { capacity_bytes: 5 * mib + overhead },
    )
  })

  it("is no duplicate of a corrupt copy", async () => {
    await withVolume(
      async (volume) => {
        const stored = noise(1, 2 * mib)
        const { id } = await put(volume, stored)
        flipBit(volume.dir, stored.subarray(mib, mib + 100))
        const again = volume.engine.upload(order, undefined)
        await writeAll(again, cut(stored, mib))
        assert.equal(await faultTag(again.finish(9n)), "BlobCapacityExceeded")
        assert.equal(await faultTag(readAll(volume, id)), "BlobNotFound")
        assert.equal((await put(volume, stored)).created, true)
      },
      { capacity_bytes: 3 * mib },
    )
  })

  it("is refused early if its content cannot be stored already", async () => {
    await withVolume(
      async (volume) => {
        const stored = noise(1, 2 * mib)
        const { id } = await put(volume, stored)
        const firstWrite = async (more: object, bytes: Uint8Array, announced?: number) => {
          const upload = volume.engine.upload({ ...order, ...more }, announced)
          const tag = await faultTag(Promise.resolve(upload.write(bytes)))
          await upload.abort()
          return tag
        }
        const none = new Uint8Array(0)
        const full = "BlobCapacityExceeded"
        // 32 hex characters.
        const expected_id = "00000000000000000000000000000000" as typeof id
        assert.equal(await firstWrite({ expected_id }, none, 2 * mib), full)
        assert.equal(await firstWrite({ expected_id: id }, none, 2 * mib), undefined)
        assert.equal(await firstWrite({}, none, 3 * mib), undefined)
        assert.equal(await firstWrite({ length: 2 * mib }, none, 2 * mib), undefined)
        assert.equal(await firstWrite({ length: 2 * mib + 1 }, none, 2 * mib + 1), full)
        assert.equal(await firstWrite({}, noise(2, 2 * mib + 1)), full)
        const longer = volume.engine.upload(order, undefined)
        const parts = cut(noise(2, 8 * mib), 100_000)
        assert.equal(await faultTag(writeAll(longer, parts)), full)
        assert(parts.length > 21)
        await longer.abort()
      },
      { capacity_bytes: 3 * mib },
    )
  })

  it("makes the volume read-only if a write or sync fails, and keeps what is stored", async () => {
    for (const step of ["write", "datasync"] as const) {
      await withVolume(async (volume) => {
        const there = noise(1, 500 * kib)
        const { id } = await put(volume, there)
        const before = await kinds(volume)
        let times = 0
        volume.hooks[step] = (name: string) => {
          if (!isOfExtents(name)) return
          times += 1
          throw Object.assign(new Error("broken"), { code: "EIO" })
        }
        assert.equal(await faultTag(put(volume, noise(2, mib))), "BlobStoreReadOnly")
        assert.equal(times, 1)
        delete volume.hooks[step]
        assert.equal(await faultTag(put(volume, noise(3, mib))), "BlobStoreReadOnly")
        assert.equal((await volume.engine.usage()).read_only, true)
        assert((await readAll(volume, id)).equals(there))
        const again = await volume.reopen()
        assert.deepEqual(await kinds(again), before)
        assert((await readAll(again, id)).equals(there))
      })
    }
  })

  it("is refused on a full disk, and works again once there is space", async () => {
    await withVolume(async (volume) => {
      volume.hooks.create = (name) => {
        if (name.includes("ext-")) throw Object.assign(new Error("full"), { code: "ENOSPC" })
      }
      assert.equal(await faultTag(put(volume, noise(1, mib))), "BlobCapacityExceeded")
      assert.equal((await put(volume, noise(2, kib))).created, true)
      delete volume.hooks.create
      assert.equal((await put(volume, noise(1, mib))).created, true)
    })
  })
})
