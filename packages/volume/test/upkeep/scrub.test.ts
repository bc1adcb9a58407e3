/**
 * The scrub detects corruption before a reader does, and knows the age of the last verification.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { makePace, stopped } from "../../upkeep/pace.ts"
import { flipBit, kib, kinds, mib, put, readAll, remove, withVolume } from "../volume-folder.ts"

const day_ns = 24n * 60n * 60n * 1_000_000_000n

describe("the scrub", () => {
  it("finds every kind of damage, and removes nothing else", async () => {
    await withVolume(async (volume) => {
      const bytes = [10_000, 20_000, 30_000, 500_000, 2_500_000, 40_000, 600_000].map((size) =>
        noise(size, size),
      )
      const ids: Array<BlobId> = []
      for (const one of bytes) ids.push((await put(volume, one)).id)
      const [buried] = ids.slice(5)
      const hit = (n: number, from: number, by = 0) => {
        const one = bytes[n] ?? assert.fail()
        flipBit(volume.dir, one.subarray(from).subarray(0, 40), by)
        return `quarantined ${ids[n]}`
      }
      // In a small blob, at the end of a large one, and in the table of another.
      const expected = [hit(1, 10_000), hit(4, 2_499_900), hit(3, 499_960, 42)]
      const before = await kinds(volume)
      await volume.engine.scrub()
      const found = (await kinds(volume)).slice(before.length)
      assert.deepEqual(found.sort(), expected.sort())
      for (const n of [0, 2, 5, 6]) {
        assert((await readAll(volume, ids[n] ?? assert.fail())).equals(bytes[n] ?? assert.fail()))
      }
      await remove(volume, buried ?? assert.fail())
      await volume.engine.scrub()
      assert.equal((await volume.engine.usage()).quarantined, 3)
    })
  })

  it("finds a record with a damaged head, and keeps deleted blobs absent", async () => {
    await withVolume(async (volume) => {
      const bytes = noise(1, 9000)
      const { id } = await put(volume, bytes)
      const other = await put(volume, noise(2, 9000))
      const { id: gone } = await put(volume, noise(3, 50))
      await remove(volume, gone)
      const again = await volume.reopen()
      // The head ends right before the payload; before that is its CRC.
      flipBit(volume.dir, bytes.subarray(0, 40), -2)
      await again.engine.scrub()
      assert.equal((await kinds(again)).at(-1), `quarantined ${id}`)
      assert.equal((await readAll(again, other.id)).length, 9000)
      assert((await again.engine.tombstone(gone)) !== undefined)
    })
  })

  it("reports when every byte was last written or verified, also after a restart", async () => {
    let now = 1_000n * day_ns
    const clock = () => now
    const ms = () => Number(now / 1_000_000n)
    await withVolume(
      async (volume) => {
        assert.equal(volume.engine.status().oldest_unverified_at, undefined)
        const written = ms()
        await put(volume, noise(1, 9000))
        await put(volume, noise(2, 2 * mib))
        assert.equal(volume.engine.status().oldest_unverified_at, written)
        now += 3n * day_ns
        const again = await volume.reopen()
        assert.equal(again.engine.status().oldest_unverified_at, written)
        const verified = ms()
        await again.engine.scrub()
        assert.equal(again.engine.status().oldest_unverified_at, verified)
        now += day_ns
        const third = await again.reopen()
        assert.equal(third.engine.status().oldest_unverified_at, verified)
      },
      { clock },
    )
  })

  it("runs in the background if configured, but not within a day of the last time", async () => {
    let now = 1_000n * day_ns
    const options = { clock: () => now, background: true, scrub_bytes_per_second: 64 * mib }
    await withVolume(async (volume) => {
      const bytes = noise(1, 300 * kib)
      await put(volume, bytes)
      const written = volume.engine.status().oldest_unverified_at
      now += 2n * day_ns
      const again = await volume.reopen()
      for (let wait = 0; wait < 1000; wait++) {
        if (again.engine.status().oldest_unverified_at !== written) break
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      assert.equal(again.engine.status().oldest_unverified_at, Number(now / 1_000_000n))
    }, options)
  }, 30_000)
})

describe("the pace of background work", () => {
  it("waits as long as the bytes take, does not catch up, and stops on request", async () => {
    let now = 0
    let is_stopped = false
    const pace = makePace(
      1_000_000,
      () => now,
      () => is_stopped,
    )
    let is_done = false
    const work = pace(500_000).then(() => {
      is_done = true
    })
    await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal(is_done, false)
    now = 10_000
    await work
    // After a long pause there is no burst: the next bytes wait again.
    const next = pace(1_000_000)
    await new Promise((resolve) => setTimeout(resolve, 5))
    is_stopped = true
    await assert.rejects(next, stopped)
  })
})
