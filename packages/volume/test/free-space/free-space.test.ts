/**
 * The floor of free space: puts leave it on the disk, deletes work below it, and compaction returns
 * space to the disk.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  idOf,
  send,
  shardBytes,
  shardOf,
  wholeOf,
} from "../../../../test/contract/blob-storage/node-engine-copies.ts"
import { type Seeded, seeded } from "../../../../test/world/seeded.ts"
import type { VolumeEngine } from "../../engine.ts"
import { order, origin } from "../opened.ts"
import { type SimulatedDisk, simulateDisk } from "../simulated/disk.ts"
import { openSimulated } from "../simulated/open.ts"

const kib = 1024
const mib = 1024 * kib
const floor_bytes = 4 * mib
const segment_bytes = 256 * kib
const timeout_ms = 120_000

const openOn = (simulated: SimulatedDisk, capacity_bytes = 0) =>
  openSimulated(simulated, {
    dir: "/volume",
    capacity_bytes,
    free_floor_bytes: floor_bytes,
    segment_bytes,
  })

/** Lets other programs use this many bytes, which the volume sees within a second. */
const others = async (simulated: SimulatedDisk, engine: VolumeEngine, bytes: number) => {
  simulated.others(bytes)
  await engine.usage()
}

const full = "BlobCapacityExceeded"

/** The tag of the fault that rejects the work. */
const tagOf = async (work: Promise<unknown>) => {
  try {
    await work
    return "stored"
  } catch (cause) {
    return faultOf(cause)._tag
  }
}

const upload = async (engine: VolumeEngine, bytes: Uint8Array, announced: number | undefined) => {
  const one = engine.upload(order, announced)
  try {
    for (let at = 0; at < bytes.length; at += 60_000) {
      await one.write(bytes.subarray(at, at + 60_000))
    }
    return await one.finish(5n)
  } finally {
    await one.abort()
  }
}

const stage = async (engine: VolumeEngine, bytes: Uint8Array) => {
  const staging = engine.stage(undefined)
  try {
    await staging.write(bytes)
    const { no_room } = await staging.seal()
    if (no_room) throw no_room.cause
  } finally {
    await staging.abort()
  }
}

/** All ways in which bytes reach a node. */
const ways: Readonly<
  Record<string, (engine: VolumeEngine, bytes: Uint8Array) => Promise<unknown>>
> = {
  put: (engine, bytes) => engine.put(order, [bytes], 5n),
  "an announced stream": (engine, bytes) => upload(engine, bytes, bytes.length),
  "a stream": (engine, bytes) => upload(engine, bytes, undefined),
  "a copy of another node": (engine, bytes) => send(engine, wholeOf(bytes), bytes),
  "a shard of another node": (engine, bytes) => {
    const order = shardOf(bytes, { index: 1, data_shards: 4 })
    return send(engine, order, shardBytes(order))
  },
}

const acknowledgeAll = async (engine: VolumeEngine) => {
  for (;;) {
    const last = (await engine.scan(0, 1000)).at(-1)
    if (!last) return
    await engine.acknowledge(last.cursor)
  }
}

/** Puts until it is refused. Returns what was stored. */
const fill = async (engine: VolumeEngine, size: number, first = 0) => {
  const ids: Array<BlobId> = []
  for (let seed = first; ; seed++) {
    const bytes = noise(seed, size)
    const tag = await tagOf(engine.put(order, [bytes], 5n))
    if (tag === full) return ids
    assert.equal(tag, "stored")
    ids.push(idOf(bytes))
  }
}

describe("the floor of free space", () => {
  for (const size of [1000, 600 * kib]) {
    it(`is left by puts of ${size} bytes, which are refused there and never pass it`, {
      timeout: timeout_ms,
    }, async () => {
      const simulated = simulateDisk(seeded(size))
      simulated.limit(16 * mib)
      const engine = await openOn(simulated)
      const ids = await fill(engine, size)
      const free_bytes = simulated.freeBytes()
      assert(free_bytes >= floor_bytes, `${free_bytes} bytes are free`)
      // It is used nearly to the end: a log file or a blob no longer fits.
      assert(free_bytes < floor_bytes + 2 * mib, `${free_bytes} bytes are free`)
      const { used_bytes, capacity_bytes } = await engine.usage()
      // A record of 1,000 bytes takes a page of the log here.
      const part = size === 1000 ? 0.2 : 0.6
      assert(used_bytes <= capacity_bytes && used_bytes > part * capacity_bytes)
      for (let at = 0; at < ids.length; at += 100) {
        await Promise.all(ids.slice(at, at + 100).map((id) => engine.delete(id, origin, 6n)))
        await acknowledgeAll(engine)
        await engine.compact()
      }
      await engine.usage()
      const again = await fill(engine, size, 1_000_000)
      assert(again.length > 0.7 * ids.length, `${again.length} of ${ids.length} again`)
      assert(simulated.freeBytes() >= floor_bytes)
      await engine.close()
    })
  }

  for (const [name, way] of Object.entries(ways)) {
    it(`limits ${name}, also if other programs took the space`, async () => {
      const simulated = simulateDisk(seeded(7))
      simulated.limit(64 * mib)
      const engine = await openOn(simulated)
      for (const size of [1000, 1500 * kib]) {
        assert.equal(await tagOf(way(engine, noise(size, size))), "stored")
        await others(simulated, engine, 64 * mib - simulated.usedBytes() - floor_bytes + 1)
        assert.equal(await tagOf(way(engine, noise(size + 1, size))), full)
        // Content that is already stored takes nothing.
        assert.equal(await tagOf(engine.put(order, [noise(3, 0)], 5n)), full)
        await others(simulated, engine, 0)
        assert.equal(await tagOf(way(engine, noise(size + 1, size))), "stored")
      }
      await engine.close()
    })
  }

  it("limits staged bytes, and an announced stream in progress", async () => {
    const simulated = simulateDisk(seeded(8))
    simulated.limit(64 * mib)
    const engine = await openOn(simulated)
    await others(simulated, engine, 50 * mib)
    assert.equal(await tagOf(stage(engine, noise(1, 11 * mib))), full)
    await engine.compact()
    await engine.usage()
    const one = engine.upload(order, 3 * mib)
    await one.write(noise(2, mib))
    await others(simulated, engine, 64 * mib - simulated.usedBytes() - floor_bytes + 1)
    const rest = async () => {
      for (let n = 0; n < 2; n++) await one.write(noise(n, mib))
      await one.finish(5n)
    }
    assert.equal(await tagOf(rest()), full)
    await one.abort()
    await engine.close()
  })

  it("refuses at once an announced put that does not fit above it", async () => {
    const simulated = simulateDisk(seeded(9))
    simulated.limit(16 * mib)
    const engine = await openOn(simulated)
    const one = engine.upload(order, 14 * mib)
    assert.equal(await tagOf(Promise.resolve(one.write(noise(1, 10)))), full)
    await one.abort()
    // Two that fit only one at a time: the second is refused before its bytes arrive.
    const first = engine.upload(order, 6 * mib)
    await first.write(noise(1, 10))
    const second = engine.upload(order, 6 * mib)
    assert.equal(await tagOf(Promise.resolve(second.write(noise(2, 10)))), full)
    await first.abort()
    await second.abort()
    assert.equal((await upload(engine, noise(3, 6 * mib), 6 * mib)).created, true)
    assert(simulated.freeBytes() >= floor_bytes)
    await engine.close()
  })

  it("does not stop deletes, reads or a startup on a disk without a free byte", async () => {
    const simulated = simulateDisk(seeded(10))
    simulated.limit(32 * mib)
    const engine = await openOn(simulated)
    const ids: Array<BlobId> = []
    for (let seed = 0; seed < 1200; seed++) {
      ids.push((await engine.put(order, [noise(seed, 2000)], 5n)).id)
    }
    await engine.close()
    simulated.others(32 * mib - simulated.usedBytes())
    assert.equal(simulated.freeBytes(), 0)
    const again = await openOn(simulated)
    assert.equal(await tagOf(again.put(order, [noise(-1, 10)], 5n)), full)
    assert.equal((await again.stat(ids[5] ?? assert.fail())).size, 2000n)
    const used_bytes = simulated.usedBytes()
    for (let at = 0; at < ids.length; at += 100) {
      await Promise.all(ids.slice(at, at + 100).map((id) => again.delete(id, origin, 6n)))
      await acknowledgeAll(again)
      await again.compact()
    }
    assert(simulated.usedBytes() < used_bytes - mib, "space came back")
    await again.close()
  })
})

describe("the capacity", () => {
  it("follows the disk, unless a smaller one is configured", async () => {
    const simulated = simulateDisk(seeded(11))
    simulated.limit(100 * mib)
    const engine = await openOn(simulated)
    const free = (await engine.usage()).capacity_bytes
    assert(free > 85 * mib && free <= 90 * mib, `${free}`)
    simulated.others(60 * mib)
    const less = (await engine.usage()).capacity_bytes
    assert(less > 30 * mib && less <= 36 * mib, `${less}`)
    await engine.put(order, [noise(1, 10 * mib)], 5n)
    simulated.others(100 * mib - simulated.usedBytes())
    const { used_bytes, capacity_bytes } = await engine.usage()
    assert(capacity_bytes >= used_bytes && capacity_bytes < 13 * mib, `${capacity_bytes}`)
    simulated.others(0)
    await engine.close()
    const configured = await openOn(simulated, 50 * mib)
    assert.equal((await configured.usage()).capacity_bytes, 50 * mib)
    simulated.others(80 * mib)
    assert((await configured.usage()).capacity_bytes < 20 * mib)
    await configured.close()
  })

  it("counts the disk space of small blobs", async () => {
    const simulated = simulateDisk(seeded(12))
    const engine = await openOn(simulated, 2 ** 40)
    const count = 6000
    for (let first = 0; first < count; first += 500) {
      const some = Array.from({ length: 500 }, (_, n) => noise(first + n, 10))
      await Promise.all(some.map((bytes) => engine.put(order, [bytes], 5n)))
    }
    const { payload_bytes, used_bytes } = await engine.usage()
    const { live_bytes } = engine.status()
    assert.equal(payload_bytes, 10 * count)
    assert(used_bytes >= live_bytes && used_bytes < 1.3 * live_bytes, `${used_bytes}`)
    await engine.checkpoint()
    await engine.close()
    const again = await openOn(simulated, 2 ** 40)
    assert.equal((await again.usage()).used_bytes, used_bytes)
    await again.close()
  })
})

const names = ["put", "a stream", "an announced stream", "a copy of another node"] as const

/** A random history on a shared disk. */
const live = async (random: Seeded) => {
  const simulated = simulateDisk(random)
  const disk_bytes = 24 * mib
  simulated.limit(disk_bytes)
  const engine = await openOn(simulated)
  const held = new Map<BlobId, Uint8Array>()
  let others_bytes = 0
  for (let step = 0; step < 60; step++) {
    const what = random.between(0, 9)
    if (what < 6) {
      const size = random.pick([10, 3000, 200 * kib, 900 * kib, 3 * mib])
      const some = Array.from({ length: random.between(1, 6) }, () =>
        noise(random.between(1, 2 ** 31), size),
      )
      const way = ways[random.pick(names)] ?? assert.fail()
      const stored = await Promise.all(some.map((bytes) => tagOf(way(engine, bytes))))
      assert(stored.every((tag) => tag === "stored" || tag === full))
      if (stored.includes("stored")) {
        const free_bytes = simulated.freeBytes()
        // Deletes may have used the reserved log file, which is then created again.
        assert(free_bytes >= floor_bytes - segment_bytes, `step ${step}: ${free_bytes} are free`)
      }
      for (const [n, bytes] of some.entries()) {
        if (stored[n] === "stored") held.set(idOf(bytes), bytes)
      }
    } else if (what === 6) {
      const most = disk_bytes - simulated.usedBytes()
      others_bytes = random.pick([0, random.between(0, most), most])
      await others(simulated, engine, others_bytes)
    } else if (what < 9) {
      for (const id of [...held.keys()].slice(0, random.between(1, 12))) {
        assert.equal(await tagOf(engine.delete(id, origin, 6n)), "stored")
        held.delete(id)
      }
    } else {
      await acknowledgeAll(engine)
      await engine.compact()
    }
  }
  for (const id of held.keys()) await engine.stat(id)
  await others(simulated, engine, 0)
  await Promise.all([...held.keys()].map((id) => engine.delete(id, origin, 6n)))
  await acknowledgeAll(engine)
  for (let round = 0; round < 6; round++) await engine.compact()
  assert(simulated.usedBytes() < 6 * mib, `${simulated.usedBytes()} bytes stay in use`)
  await engine.usage()
  assert.equal(await tagOf(engine.put(order, [noise(1, 2 * mib)], 5n)), "stored")
  await engine.close()
}

describe("a volume on a disk with other programs", () => {
  it("leaves the floor, accepts every delete and returns space", {
    timeout: timeout_ms,
  }, async () => {
    for (let seed = 1; seed <= 5; seed++) await live(seeded(seed))
  })
})
