/**
 * The plain blob store's engine on a disk that fails at one named step.
 */
import assert from "node:assert/strict"
import { linkSync, mkdtempSync, rmSync, truncateSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, it } from "vitest"
import { store_origin } from "#actors/blob-storage/blob-admission.ts"
import { type Disk, disk } from "#adapters/blob-files-disk.ts"
import { openEngine } from "#adapters/blob-files-engine.ts"
import { faultOf } from "#actors/blob-storage/blob-fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../contract/blob-store-bytes.ts"
import { filesUnder } from "./blob-files-folder.ts"

const order = {
  labels: {},
  policy: "REPLICATION_POLICY_UNSPECIFIED",
  origin: store_origin,
  expected_id: undefined,
  if_none_match: false,
} as const

const failure = (code: string) => Object.assign(new Error(`${code}: on purpose`), { code })

/** The disk whose step `broken` fails with a code for as long as one is set. */
const breakableDisk = (broken: keyof Disk) => {
  const state: { code?: string } = {}
  const breakable = {
    ...disk,
    [broken]: (...parameters: ReadonlyArray<never>) => {
      if (state.code !== undefined) throw failure(state.code)
      // Every step is a function; which one it is, `broken` says.
      return (disk[broken] as (...parameters: ReadonlyArray<never>) => unknown)(...parameters)
    },
  }
  return { state, disk: breakable }
}

const faultIn = async (promise: Promise<unknown>) => {
  try {
    await promise
  } catch (cause) {
    return faultOf(cause)._tag
  }
  return "no fault"
}

let dir = ""
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "almanac-blobs-"))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const open = (on: Disk, capacity_bytes = 1e9) =>
  openEngine({ dir, capacity_bytes, size_max_bytes: 1e9, at: 1n }, on)

const putAll = async (engine: Awaited<ReturnType<typeof open>>, bytes: Uint8Array) => {
  await engine.putBegin(1, order)
  try {
    await engine.putAppend(1, bytes)
    return await engine.putFinish(1, 5n)
  } finally {
    await engine.putEnd(1)
  }
}

describe("a plain blob store after a failed sync or commit", () => {
  for (const step of ["syncFile", "syncFolder", "commit", "rename"] as const) {
    for (const size of [100, 700_000]) {
      it(`takes no more writes when ${step} failed for ${size} bytes, and reads on`, async () => {
        const { state, disk: breakable } = breakableDisk(step)
        const engine = await open(breakable)
        const kept = await engine.putWhole(order, noise(1, size), 2n)
        state.code = "EIO"
        const torn = noise(2, size)
        assert.equal(await faultIn(putAll(engine, torn)), "BlobStoreReadOnly")
        delete state.code
        assert.equal(await faultIn(engine.putWhole(order, torn, 6n)), "BlobStoreReadOnly")
        assert.equal(await faultIn(engine.putWhole(order, noise(1, size), 6n)), "BlobStoreReadOnly")
        assert.equal(await faultIn(engine.delete(kept.id, store_origin, 7n)), "BlobStoreReadOnly")
        assert.equal(await faultIn(engine.acknowledge(1)), "BlobStoreReadOnly")
        assert.equal((await engine.usage()).read_only, true)
        assert.deepEqual(await engine.stat(kept.id), kept.meta)
        assert.deepEqual((await engine.list("", "", 10)).ids, [kept.id])
        await engine.shut()

        const again = await open(disk)
        assert.deepEqual((await again.list("", "", 10)).ids, [kept.id])
        assert.equal(filesUnder(dir, "blobs").length, 1)
        assert.deepEqual(filesUnder(dir, "incoming"), [])
        assert.equal((await again.putWhole(order, torn, 8n)).created, true)
        await again.shut()
      })
    }
  }

  it("answers every put that waits in the line", async () => {
    const { state, disk: breakable } = breakableDisk("commit")
    const engine = await open(breakable)
    state.code = "SQLITE_IOERR_FSYNC"
    const puts = Array.from({ length: 40 }, (_, seed) =>
      faultIn(engine.putWhole(order, noise(seed, 100), 2n)),
    )
    assert.deepEqual(new Set(await Promise.all(puts)), new Set(["BlobStoreReadOnly"]))
    await engine.shut()
  })

  it("hides a corrupt copy that it can no longer set aside", async () => {
    const { state, disk: breakable } = breakableDisk("syncFile")
    const engine = await open({ ...breakable, read: disk.read })
    const { id } = await engine.putWhole(order, noise(1, 100), 2n)
    state.code = "EIO"
    await faultIn(engine.putWhole(order, noise(2, 100), 3n))
    truncateSync(join(dir, "blobs", id.slice(0, 2), id), 50)
    assert.equal(await faultIn(engine.get(id, {}, 4n)), "BlobCorrupt")
    assert.equal(await faultIn(engine.get(id, {}, 4n)), "BlobNotFound")
    await engine.shut()
  })
})

describe("a plain blob store on a disk that is full", () => {
  for (const step of ["create", "write", "syncFile", "rename"] as const) {
    for (const size of [100, 700_000]) {
      it(`refuses ${size} bytes at ${step}, and all else goes on`, async () => {
        const { state, disk: breakable } = breakableDisk(step)
        const engine = await open(breakable)
        const kept = await engine.putWhole(order, noise(1, size), 2n)
        state.code = "ENOSPC"
        assert.equal(await faultIn(putAll(engine, noise(2, size))), "BlobCapacityExceeded")
        const whole = engine.putWhole(order, noise(3, size), 3n)
        assert.equal(await faultIn(whole), "BlobCapacityExceeded")
        assert.deepEqual(filesUnder(dir, "incoming"), [])
        assert.equal(filesUnder(dir, "blobs").length, 1)
        assert.equal((await engine.usage()).used_bytes, size)
        const { meta } = await engine.get(kept.id, {}, 4n)
        assert.deepEqual(meta, kept.meta)
        await engine.delete(kept.id, store_origin, 5n)
        delete state.code
        assert.equal((await engine.putWhole(order, noise(2, size), 6n)).created, true)
        assert.deepEqual((await engine.usage()).read_only, false)
        await engine.shut()
      })
    }
  }

  it("refuses the puts of a full index and lets its deletes through on the reserve", async () => {
    let full = false
    const engine = await open({
      ...disk,
      commit: (transaction) => {
        // The reserve gives its room back when it is released; until then there is none.
        if (full && filesUnder(dir, ".").some((path) => path.endsWith("/reserve"))) {
          throw failure("SQLITE_FULL")
        }
        transaction()
      },
    })
    const kept = await engine.putWhole(order, noise(1, 100), 2n)
    full = true
    const put = engine.putWhole(order, noise(2, 100), 3n)
    assert.equal(await faultIn(put), "BlobCapacityExceeded")
    assert.equal(filesUnder(dir, "blobs").length, 1)
    await engine.delete(kept.id, store_origin, 4n)
    assert.equal(await faultIn(engine.stat(kept.id)), "BlobNotFound")
    full = false
    assert.equal((await engine.putWhole(order, noise(2, 100), 5n)).created, true)
    assert.equal((await engine.usage()).read_only, false)
    await engine.shut()
  })

  it("stays usable when even the reserve is not enough", async () => {
    const { state, disk: breakable } = breakableDisk("commit")
    const engine = await open(breakable)
    const kept = await engine.putWhole(order, noise(1, 100), 2n)
    state.code = "SQLITE_FULL"
    const remove = engine.delete(kept.id, store_origin, 3n)
    assert.equal(await faultIn(remove), "BlobCapacityExceeded")
    delete state.code
    await engine.delete(kept.id, store_origin, 4n)
    assert.equal((await engine.usage()).read_only, false)
    assert.equal(await engine.tombstone("00000000000000000000000000000000" as BlobId), undefined)
    await engine.shut()
  })
})

describe("a reader of a plain blob store", () => {
  it("that finds its old copy corrupt leaves the copy alone that was put since", async () => {
    const engine = await open(disk)
    const bytes = noise(1, 700_000)
    const { id } = await engine.putWhole(order, bytes, 2n)
    const path = join(dir, "blobs", id.slice(0, 2), id)
    await engine.readOpen(1, id, {}, 3n)
    linkSync(path, join(dir, "old"))
    await engine.delete(id, store_origin, 4n)
    const { meta } = await engine.putWhole(order, bytes, 5n)
    truncateSync(join(dir, "old"), 10)
    assert.equal(await faultIn(engine.readNext(1)), "BlobCorrupt")
    await engine.readClose(1)
    assert.deepEqual(await engine.stat(id), meta)
    assert.equal((await engine.usage()).quarantined, 0)
    assert.equal((await engine.get(id, {}, 6n)).data?.length, 700_000)
    await engine.shut()
  })

  it("goes on with a copy that is deleted while it reads", async () => {
    const engine = await open(disk)
    const { id } = await engine.putWhole(order, noise(1, 2_000_000), 2n)
    await engine.readOpen(1, id, {}, 3n)
    await engine.delete(id, store_origin, 4n)
    let read = 0
    for (let bytes = await engine.readNext(1); bytes; bytes = await engine.readNext(1)) {
      read += bytes.length
    }
    assert.equal(read, 2_000_000)
    await engine.readClose(1)
    await engine.shut()
  })
})
