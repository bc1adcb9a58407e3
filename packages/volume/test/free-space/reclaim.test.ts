/**
 * Compaction on request: returns the space of deleted blobs to the disk at once, for any live share
 * of their files, and keeps live data intact.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { seeded } from "../../../../test/world/seeded.ts"
import type { VolumeEngine } from "../../engine.ts"
import type { Reclaimed } from "../../free-space/reclaim.ts"
import { order, origin } from "../opened.ts"
import { type SimulatedDisk, simulateDisk } from "../simulated/disk.ts"
import { openSimulated } from "../simulated/open.ts"

const kib = 1024
const mib = 1024 * kib
const floor_bytes = 4 * mib
const segment_bytes = 2 * mib
/** The size of a small disk, so that a run has many files. */
const small_bytes = 256 * kib
/** Longer than any run in these tests. */
const wait_ms = 60_000

const openOn = (simulated: SimulatedDisk, segment = segment_bytes) =>
  openSimulated(simulated, {
    dir: "/volume",
    capacity_bytes: 0,
    free_floor_bytes: floor_bytes,
    segment_bytes: segment,
  })

const acknowledgeAll = async (engine: VolumeEngine) => {
  for (;;) {
    const last = (await engine.scan(0, 1000)).at(-1)
    if (!last) return
    await engine.acknowledge(last.cursor)
  }
}

type Blobs = Map<BlobId, number>

const put = async (engine: VolumeEngine, blobs: Blobs, seed: number, size: number) => {
  const { id } = await engine.put(order, [noise(seed, size)], 5n)
  blobs.set(id, seed)
}

/** All of the given ids, in batches as clients send them. */
const fill = async (engine: VolumeEngine, count: number, size: number) => {
  const blobs: Blobs = new Map()
  for (let first = 0; first < count; first += 20) {
    const seeds = Array.from({ length: 20 }, (_, n) => first + n)
    await Promise.all(seeds.map((seed) => put(engine, blobs, seed, size)))
  }
  return blobs
}

const remove = async (engine: VolumeEngine, blobs: Blobs, isGone: (n: number) => boolean) => {
  const gone = [...blobs.keys()].filter((_, n) => isGone(n))
  await Promise.all(gone.map((id) => engine.delete(id, origin, 6n)))
  for (const id of gone) blobs.delete(id)
  await acknowledgeAll(engine)
}

/** Background compaction, until it finds nothing more to do. */
const settle = async (engine: VolumeEngine) => {
  for (let round = 0; round < 6; round++) await engine.compact()
}

const holdsAll = async (engine: VolumeEngine, blobs: Blobs, size: number) => {
  for (const [id, seed] of blobs) {
    const { windows, data } = await engine.get(id, {}, 7n)
    const parts = data ? [data] : await Array.fromAsync(windows(), (one) => Buffer.from(one))
    assert(Buffer.concat(parts).equals(noise(seed, size)), id)
  }
  assert.equal((await engine.usage()).blob_count, blobs.size)
}

/** The space returned is what the disk gained, less the growth of checkpoint files. */
const isHonest = (simulated: SimulatedDisk, before: number, found: Reclaimed) => {
  const gained = before - simulated.usedBytes()
  assert.deepEqual([found.is_done, found.problem], [true, undefined])
  assert(
    Math.abs(found.given_back_bytes - gained) < 64 * kib,
    `${found.given_back_bytes} ${gained}`,
  )
  return found
}

const sizes = [2000, 40 * kib, 700 * kib]

describe("compaction on request", () => {
  for (const size of sizes) {
    it(`returns the scattered space of a third of blobs of ${size} bytes`, async () => {
      const simulated = simulateDisk(seeded(size))
      simulated.limit(400 * mib)
      const engine = await openOn(simulated)
      const blobs = await fill(engine, Math.min(4000, Math.floor((40 * mib) / size)), size)
      await remove(engine, blobs, (n) => n % 3 === 0)
      await settle(engine)
      const before = simulated.usedBytes()
      const found = isHonest(simulated, before, await engine.reclaim(wait_ms))
      const { disk_bytes, used_bytes, given_back_bytes } = found
      assert(given_back_bytes > 0, `${given_back_bytes} bytes`)
      // The rest is the current log file, the spare one, and the checkpoints.
      assert(disk_bytes < 1.15 * used_bytes + 3 * segment_bytes, `${disk_bytes} ${used_bytes}`)
      await holdsAll(engine, blobs, size)
      await engine.close()
      const again = await openOn(simulated)
      await holdsAll(again, blobs, size)
      const second = await again.reclaim(wait_ms)
      assert(second.given_back_bytes <= 2 * segment_bytes, `${second.given_back_bytes} twice`)
      await again.close()
    })

    it(`returns all space once all blobs of ${size} bytes are deleted`, async () => {
      const simulated = simulateDisk(seeded(size + 1))
      simulated.limit(400 * mib)
      const engine = await openOn(simulated)
      const blobs = await fill(engine, 60, size)
      await remove(engine, blobs, () => true)
      await settle(engine)
      const { disk_bytes } = isHonest(
        simulated,
        simulated.usedBytes(),
        await engine.reclaim(wait_ms),
      )
      assert(disk_bytes < 4 * segment_bytes, `${disk_bytes} bytes are left`)
      await engine.put(order, [noise(1, size)], 5n)
      await engine.close()
    })
  }

  it("works on a disk without a free byte, so that puts continue", async () => {
    const size = 20 * kib
    const simulated = simulateDisk(seeded(3))
    simulated.limit(64 * mib)
    const engine = await openOn(simulated, small_bytes)
    const blobs = await fill(engine, 1000, size)
    simulated.others(64 * mib - simulated.usedBytes())
    assert.equal(simulated.freeBytes(), 0)
    await engine.usage()
    await remove(engine, blobs, (n) => n % 3 !== 0)
    const before = simulated.usedBytes()
    const found = isHonest(simulated, before, await engine.reclaim(wait_ms))
    assert(found.given_back_bytes > 10 * mib, `${found.given_back_bytes} bytes`)
    await holdsAll(engine, blobs, size)
    assert.equal((await engine.put(order, [noise(-1, size)], 5n)).created, true)
    await engine.close()
  })

  it("reports its progress, and is one run for all callers", async () => {
    const size = 700 * kib
    const simulated = simulateDisk(seeded(4))
    simulated.limit(400 * mib)
    const engine = await openOn(simulated)
    const blobs = await fill(engine, 40, size)
    await remove(engine, blobs, (n) => n % 2 === 0)
    const [first, other] = await Promise.all([engine.reclaim(0), engine.reclaim(0)])
    assert.equal(first.is_done, false)
    assert(first.remaining_bytes > 0)
    assert.deepEqual(other, first)
    const last = await engine.reclaim(wait_ms)
    assert.deepEqual([last.is_done, last.remaining_bytes < mib], [true, true])
    await holdsAll(engine, blobs, size)
    await engine.close()
  })

  it("reports that facts are missing in the event log, and is refused when closed", async () => {
    const simulated = simulateDisk(seeded(5))
    const engine = await openOn(simulated)
    const blobs = await fill(engine, 200, 20 * kib)
    await Promise.all([...blobs.keys()].map((id) => engine.delete(id, origin, 6n)))
    const facts = await engine.scan(0, 1000)
    const { is_done, problem } = await engine.reclaim(wait_ms)
    assert(is_done)
    assert.match(problem ?? "", /after the event log has all facts/)
    assert.deepEqual(await engine.scan(0, 1000), facts)
    const isShut = (cause: unknown) => faultOf(cause)._tag === "BlobStoreFailed"
    const refused = assert.rejects(engine.reclaim(wait_ms), isShut)
    await engine.close()
    await refused
  })
})

describe("background compaction", () => {
  it("returns scattered space near the floor, so that puts continue", async () => {
    const size = 20 * kib
    const simulated = simulateDisk(seeded(6))
    simulated.limit(32 * mib)
    const engine = await openOn(simulated, small_bytes)
    const blobs: Blobs = new Map()
    const isStored = async (seed: number) => {
      try {
        await put(engine, blobs, seed, size)
        return true
      } catch (cause) {
        assert.equal(faultOf(cause)._tag, "BlobCapacityExceeded")
        return false
      }
    }
    /** Compaction runs whenever a put is refused, as it does within a second. */
    const untilFull = async (first: number) => {
      for (let seed = first; ; seed++) {
        if (await isStored(seed)) continue
        await acknowledgeAll(engine)
        await engine.compact()
        await engine.usage()
        if (!(await isStored(seed))) return seed - first
      }
    }
    const stored = await untilFull(0)
    // Each file keeps two thirds of what was written to it.
    await remove(engine, blobs, (n) => n % 3 === 0)
    const again = await untilFull(100_000)
    assert(again > stored / 5, `${again} puts after ${stored}`)
    assert(simulated.freeBytes() >= floor_bytes - small_bytes)
    await holdsAll(engine, blobs, size)
    await engine.close()
  })
})
