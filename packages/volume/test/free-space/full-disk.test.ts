/**
 * A disk that was full once: the space of deleted blobs can be reclaimed, because a checkpoint has
 * space for it, or makes some.
 */
import assert from "node:assert/strict"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, it } from "vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { seeded } from "../../../../test/world/seeded.ts"
import type { VolumeEngine } from "../../engine.ts"
import { diskError, freshFolder, opened, order, origin, watchedDisk } from "../opened.ts"
import { type SimulatedDisk, simulateDisk } from "../simulated/disk.ts"
import { openSimulated } from "../simulated/open.ts"
import type { Fault } from "../simulated/steps.ts"

const kib = 1024
const dir = "/volume"
const timeout_ms = 300_000

const openOn = (simulated: SimulatedDisk, segment_bytes: number) =>
  openSimulated(simulated, { dir, capacity_bytes: 2 ** 40, segment_bytes })

/** Puts this many blobs concurrently. Returns those that were stored, and the refusals. */
const putMany = async (engine: VolumeEngine, first: number, count: number, size: number) => {
  const ids: Array<BlobId> = []
  const faults: Array<string> = []
  const putOne = async (seed: number) => {
    try {
      ids.push((await engine.put(order, [noise(seed, size)], 5n)).id)
    } catch (cause) {
      faults.push(faultOf(cause)._tag)
    }
  }
  await Promise.all(Array.from({ length: count }, (_, n) => putOne(first + n)))
  return { ids, faults }
}

const remove = (engine: VolumeEngine, ids: ReadonlyArray<BlobId>) =>
  Promise.all(ids.map((id) => engine.delete(id, origin, 6n)))

const acknowledgeAll = async (engine: VolumeEngine) => {
  for (;;) {
    const last = (await engine.scan(0, 1000)).at(-1)
    if (!last) return
    await engine.acknowledge(last.cursor)
  }
}

const at_once = 100
/** A quarter of a log file. */
const some = 25

/** Puts until the disk is full. */
const fill = async (engine: VolumeEngine, size: number) => {
  const all: Array<BlobId> = []
  for (let seed = 0; ; seed += at_once) {
    const { ids, faults } = await putMany(engine, seed, at_once, size)
    all.push(...ids)
    if (faults.length === 0) continue
    assert(faults.every((tag) => tag === "BlobCapacityExceeded"))
    return all
  }
}

const empty = async (engine: VolumeEngine, ids: ReadonlyArray<BlobId>) => {
  for (let at = 0; at < ids.length; at += at_once) {
    await remove(engine, ids.slice(at, at + at_once))
    await acknowledgeAll(engine)
    await engine.compact()
  }
}

const takesPuts = async (engine: VolumeEngine, first: number) => {
  const { faults } = await putMany(engine, first, some, 1000)
  assert.deepEqual(faults, [])
}

/** Asserts that some of these blobs are gone, and all others are intact. */
const holds = async (
  engine: VolumeEngine,
  all: ReadonlyArray<BlobId>,
  gone: ReadonlySet<BlobId>,
) => {
  for (const id of all) {
    const found = await engine.stat(id).then(
      () => "there",
      (cause: unknown) => faultOf(cause)._tag,
    )
    assert.equal(found, gone.has(id) ? "BlobNotFound" : "there", id)
  }
}

/** Shortens the checkpoint files to their contents, as in trapped volumes of older versions. */
const trim = async ({ disk, bytes }: SimulatedDisk, checkpoint_bytes: number) => {
  for (const name of ["checkpoint-1", "checkpoint-2"]) {
    const path = `${dir}/${name}`
    const whole = bytes(path).slice(0, checkpoint_bytes)
    await disk.remove(path)
    const file = await disk.create(path)
    await file.write([whole], 0)
    await file.datasync()
    await file.close()
  }
  await disk.syncFolder(dir)
}

const segment_bytes = 128 * kib
/** A checkpoint of five blobs: three pieces of a page. */
const small_bytes = 12 * kib
const blobs = 600

/** The space that a trapped volume can free for a checkpoint. */
const ways = ["spare log files", "empty files of extents"] as const
type Way = (typeof ways)[number]

const takeSpare = async ({ disk, paths }: SimulatedDisk, used: number) => {
  const logs = paths()
    .filter((path) => path.includes("/log-"))
    .sort()
  assert(logs.length > used, "there is a spare file")
  for (const path of logs.slice(used)) await disk.remove(path)
  await disk.syncFolder(dir)
}

/** A volume on a full disk, with checkpoint files too short for its index. */
const trapped = async (seed: number, way: Way) => {
  const before = simulateDisk(seeded(seed))
  const engine = await openOn(before, segment_bytes)
  const { ids } = await putMany(engine, 0, 5, 1000)
  await engine.checkpoint()
  await engine.checkpoint()
  for (let n = ids.length; n < blobs; n += at_once) {
    ids.push(...(await putMany(engine, n, at_once, 1000)).ids)
  }
  const is_large = way === "empty files of extents"
  const large = is_large ? (await putMany(engine, blobs, 4, 100 * kib)).ids : []
  const { log_files } = engine.status()
  before.stop("kill")
  const simulated = before.after()
  await trim(simulated, small_bytes)
  if (is_large) await takeSpare(simulated, log_files)
  const limit_bytes = simulated.usedBytes()
  simulated.limit(limit_bytes)
  const again = await openOn(simulated, segment_bytes)
  const gone = [...large, ...ids.slice(0, blobs / 2)]
  ids.push(...large)
  await remove(again, gone)
  await acknowledgeAll(again)
  return { simulated, limit_bytes, engine: again, ids, gone: new Set(gone) }
}

describe("a volume on a full disk", () => {
  it("can be emptied, and accepts puts again, also after a restart", {
    timeout: timeout_ms,
  }, async () => {
    const simulated = simulateDisk(seeded(1))
    simulated.limit(6 * kib * kib)
    const engine = await openOn(simulated, 256 * kib)
    const ids = await fill(engine, 400)
    assert(ids.length > 5000, `more than a new checkpoint file has room for: ${ids.length}`)
    await empty(engine, ids)
    await takesPuts(engine, 1_000_000)
    await engine.close()
    const again = await openOn(simulated, 256 * kib)
    await holds(again, ids, new Set(ids))
    await takesPuts(again, 2_000_000)
    await again.close()
  })

  it("refuses puts for which a checkpoint would have no space, but no deletes", async () => {
    let is_full = false
    const disk = watchedDisk((step, path) => {
      if (is_full && step === "write" && path.includes("checkpoint")) throw diskError("ENOSPC")
    })
    const engine = await opened(freshFolder(), { segment_bytes: 8 * kib * kib }, disk)
    is_full = true
    const ids = await fill(engine, 10)
    assert(ids.length > 1000, `as many as there is room for: ${ids.length}`)
    await remove(engine, ids)
    await remove(
      engine,
      ids.slice(0, 500).map((id) => `${id.slice(0, 28)}dead` as BlobId),
    )
    is_full = false
    await takesPuts(engine, 1_000_000)
  })

  it.each(ways)("recovers from the trap of older versions by %s", async (way) => {
    const { engine, ids, gone } = await trapped(1, way)
    assert((await engine.compact()).log_files > 0)
    await takesPuts(engine, 1_000_000)
    await holds(engine, ids, gone)
    await engine.close()
  })

  it.each(ways)(
    "loses nothing where it ends on the way by %s",
    { timeout: timeout_ms },
    async (way) => {
      for (let step = 1; ; step++) {
        const { simulated, limit_bytes, engine, ids, gone } = await trapped(step, way)
        const kind = step % 2 === 0 ? "kill" : "power"
        const fault: Fault = { kind, moment: step % 3 === 0 ? "before" : "within" }
        simulated.plan(step, fault)
        const round = engine.compact().then(() => "done")
        const end = await Promise.race([round, simulated.end.then(() => nextTurn("ended"))])
        if (end === "done") return assert(step > 15, `it took ${step} steps`)
        const after = simulated.after()
        after.limit(limit_bytes)
        const again = await openOn(after, segment_bytes)
        await holds(again, ids, gone)
        await acknowledgeAll(again)
        await again.compact()
        await takesPuts(again, 1_000_000)
        await holds(again, ids, gone)
        await again.close()
      }
    },
  )

  it("reports once that compaction has no room", async () => {
    let is_full = false
    const disk = watchedDisk((step, path) => {
      if (is_full && step === "write" && !path.includes("log-0")) throw diskError("ENOSPC")
    })
    const reports: Array<string> = []
    const report = (problem: string) => void reports.push(problem)
    const engine = await opened(freshFolder(), { report }, disk)
    const { ids } = await putMany(engine, 0, at_once * 3, 1000)
    await remove(engine, ids)
    await acknowledgeAll(engine)
    is_full = true
    for (let round = 0; round < 3; round++) {
      assert.deepEqual(await engine.compact(), { log_files: 0, extent_files: 0 })
    }
    assert.match(
      reports.join(),
      /^Compaction does not have enough free space: The disk is full: .*ENOSPC/,
    )
    assert.equal(reports.length, 1)
    is_full = false
    assert((await engine.compact()).log_files > 0)
  })
})
