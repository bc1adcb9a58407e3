/**
 * The commit queue: many operations share a sync, each resolves once it is durable, operations on
 * one id keep their order, and a failed or full disk is reported without loss.
 */
import assert from "node:assert/strict"
import { statSync } from "node:fs"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, it } from "vitest"
import { type VolumeDisk, volumeDisk } from "../disk.ts"
import type { VolumeEngine } from "../engine.ts"
import { batchesIn, flip, logPaths } from "./damaged.ts"
import {
  copyOf,
  diskError,
  freshFolder,
  opened,
  origin,
  putEach,
  putOne,
  readOne,
  tagOf,
  watchedDisk,
} from "./opened.ts"

const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n)

const roomy = { segment_bytes: 8 * 1024 * 1024 }

describe("group commit", () => {
  it("takes one sync for concurrent puts, and one for a single put", async () => {
    const engine = await opened(freshFolder(), roomy)
    await Promise.all(upTo(64).map((seed) => putOne(engine, seed)))
    assert(engine.status().batches <= 2, `${engine.status().batches} batches for 64 puts`)
    const before = engine.status().batches
    await putEach(engine, upTo(5, 100))
    assert.equal(engine.status().batches, before + 5)
  })

  it("takes far fewer syncs than puts for 64 sequential callers", async () => {
    const engine = await opened(freshFolder(), roomy)
    await Promise.all(upTo(64).map((caller) => putEach(engine, upTo(20, 100 * caller))))
    const { batches } = engine.status()
    assert(batches <= 1280 / 20, `${batches} syncs for 1280 puts`)
  })

  it("resolves a put only after its sync", async () => {
    const steps: Array<string> = []
    const watch = watchedDisk((step, path) => {
      if (path.includes("log-")) steps.push(step)
    })
    const engine = await opened(freshFolder(), roomy, watch)
    const from = steps.length
    await putOne(engine, 1)
    assert.deepEqual(steps.slice(from, from + 2), ["write", "datasync"])
  })

  it("chains batches across files without a gap", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(200))
    const batches = batchesIn(dir)
    assert(new Set(batches.map(({ path }) => path)).size > 2)
    assert.deepEqual(
      batches.map(({ sequence }) => sequence),
      upTo(200, 1),
    )
    for (const [n, { previous_crc }] of batches.entries()) {
      assert.equal(previous_crc, n === 0 ? 0 : batches[n - 1]?.crc)
    }
  })

  it("splits what exceeds one batch", async () => {
    const engine = await opened(freshFolder(), roomy)
    const answers = await Promise.all(upTo(150).map((seed) => putOne(engine, seed, 200_000)))
    assert.equal(new Set(answers.map(({ id }) => id)).size, 150)
    assert(engine.status().batches >= 4)
    for (const seed of [0, 70, 149]) assert.equal(await readOne(engine, seed, 200_000), "whole")
  })
})

describe("files of the log", () => {
  const sizesAfter = async (step_ms: number) => {
    const dir = freshFolder()
    let clock = 0
    const now = () => {
      clock += step_ms
      return clock
    }
    const engine = await opened(dir, { now })
    await putEach(engine, upTo(400), 8000)
    return logPaths(dir).map((path) => statSync(path).size / 1024)
  }

  it("grow while they are requested quickly, and keep their length otherwise", async () => {
    const quick = await sizesAfter(0)
    assert(Math.max(...quick) >= 1024, `${quick}`)
    assert.deepEqual(new Set(await sizesAfter(20_000)), new Set([128]))
  })

  it("include a reserved one, even if nothing was put", async () => {
    const dir = freshFolder()
    await opened(dir)
    assert.equal(logPaths(dir).length, 2)
  })
})

describe("concurrent operations on one id", () => {
  it("keep their order", async () => {
    const engine = await opened(freshFolder())
    const { id } = await putOne(engine, 1)
    await engine.delete(id, origin, 5n)
    const stored = [putOne(engine, 1), putOne(engine, 2), putOne(engine, 1)]
    const removed = engine.delete(id, origin, 6n)
    const last = putOne(engine, 1)
    await removed
    const created = (await Promise.all(stored)).map((answer) => answer.created)
    assert.deepEqual(created, [true, true, false])
    assert.equal((await last).created, true)
    assert.equal(await readOne(engine, 1), "whole")
    const kinds = (await engine.scan(0, 10)).map(({ kind }) => kind)
    assert.deepEqual(kinds.toSorted(), ["deleted", "deleted", ...Array(4).fill("stored")])
  })

  it("write one record for a hundred identical puts", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    const answers = await Promise.all(upTo(100).map(() => putOne(engine, 1)))
    assert.equal(answers.filter(({ created }) => created).length, 1)
    assert.equal(batchesIn(dir).flatMap(({ records }) => records).length, 1)
  })
})

describe("a disk that fails", () => {
  for (const step of ["write", "datasync"] as const) {
    it(`once in a ${step} makes the volume read-only, and is never retried`, async () => {
      let failing = false
      let attempts = 0
      const disk = watchedDisk((done, path) => {
        if (failing && done !== "create" && path.includes("log-")) attempts += 1
        if (failing && done === step && path.includes("log-")) throw diskError("EIO")
      })
      const dir = freshFolder()
      const engine = await opened(dir, roomy, disk)
      await putEach(engine, upTo(3))
      failing = true
      const tags = await Promise.all(upTo(5, 10).map((seed) => tagOf(putOne(engine, seed))))
      assert.deepEqual(new Set(tags), new Set(["BlobStoreReadOnly"]))
      const attempts_before = attempts
      failing = false
      assert.equal(await tagOf(putOne(engine, 20)), "BlobStoreReadOnly")
      const { ids } = await engine.list("", "", 10)
      const [id = assert.fail()] = ids
      assert.equal(await tagOf(engine.delete(id, origin, 9n)), "BlobStoreReadOnly")
      assert.equal(await tagOf(engine.acknowledge(1)), "BlobStoreReadOnly")
      assert.equal(attempts, attempts_before)
      assert.equal(attempts_before, step === "write" ? 1 : 2)
      for (const seed of upTo(3)) assert.equal(await readOne(engine, seed), "whole")
      assert.equal((await engine.usage()).read_only, true)
      assert.equal((await engine.scan(0, 10)).length, 3)
      await engine.close()
      const again = await opened(dir)
      for (const seed of upTo(3)) assert.equal(await readOne(again, seed), "whole")
      await putOne(again, 30)
    })
  }

  it("is reported once, with the error and the failed call", async () => {
    let failing = false
    const disk = watchedDisk((step) => {
      const message = "EIO: i/o error, fdatasync"
      const error = Object.assign(new Error(message), { code: "EIO", syscall: "fdatasync" })
      if (failing && step === "datasync") throw error
    })
    const reports: Array<string> = []
    const report = (problem: string) => reports.push(problem)
    const engine = await opened(freshFolder(), { ...roomy, report }, disk)
    await putOne(engine, 1)
    assert.deepEqual(reports, [])
    failing = true
    for (const seed of upTo(3, 10)) {
      assert.equal(await tagOf(putOne(engine, seed)), "BlobStoreReadOnly")
      assert.equal(await tagOf(putOne(engine, seed, 1_100_000)), "BlobStoreReadOnly")
    }
    await engine.close()
    const [line = assert.fail(), ...more] = reports
    assert.match(line, /^the store is read-only .*EIO: i\/o error, fdatasync$/)
    assert.deepEqual(more, [])
  })
})

/**
 * A volume on a disk that is full whenever `is_full` returns true. Existing files stay writable.
 */
const onFullDisk = async (dir: string) => {
  const state = { is_full: false }
  const disk = watchedDisk((step) => {
    if (state.is_full && step === "create") throw diskError("ENOSPC")
  })
  return { engine: await opened(dir, {}, disk), state }
}

/** Puts until one is refused. Returns the refusal and the number of puts. */
const fill = async (engine: VolumeEngine, from: number, size = 8000) => {
  for (let seed = from; seed < from + 500; seed++) {
    const tag = await tagOf(putOne(engine, seed, size))
    if (tag !== "none") return { tag, taken: seed - from }
  }
  return { tag: "none", taken: 500 }
}

describe("a full disk", () => {
  it("refuses puts, accepts deletes, and recovers once there is space again", async () => {
    const dir = freshFolder()
    const { engine, state } = await onFullDisk(dir)
    const ids = await putEach(engine, upTo(30))
    state.is_full = true
    const { tag, taken } = await fill(engine, 1000)
    assert.equal(tag, "BlobCapacityExceeded")
    assert.equal((await engine.usage()).read_only, false)
    assert.equal(await tagOf(putOne(engine, 0)), "none", "stored blobs still exist")
    for (const id of ids) await engine.delete(id, origin, 9n)
    await engine.acknowledge(10)
    await engine.checkpoint()
    assert.equal((await engine.scan(10, 1000)).length, 20 + taken + 30)
    assert.equal(await tagOf(putOne(engine, 3000)), "BlobCapacityExceeded")
    state.is_full = false
    assert.equal(await tagOf(putOne(engine, 3000)), "none")
    const again = await opened(copyOf(dir))
    assert.equal(await readOne(again, 3000), "whole")
    assert.equal(await readOne(again, 0), "BlobNotFound")
    assert.equal(await readOne(again, 1000, 8000), "whole")
  })

  it("is used for the next file once an eighth of the current one is written", async () => {
    let files = 0
    const create: VolumeDisk["create"] = (path) => {
      if (path.includes("log-")) files += 1
      return volumeDisk.create(path)
    }
    const engine = await opened(freshFolder(), {}, { ...volumeDisk, create })
    await putOne(engine, 0, 100)
    assert.equal(files, 2)
    await putEach(engine, upTo(2), 8000)
    assert.equal(files, 3)
  })

  it("is retried if a file was started while it was full", async () => {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    let is_full = false
    const create: VolumeDisk["create"] = async (path) => {
      if (!is_full) return volumeDisk.create(path)
      begun.resolve()
      await gate.promise
      throw diskError("ENOSPC")
    }
    const engine = await opened(freshFolder(), {}, { ...volumeDisk, create })
    is_full = true
    // The next file is started soon after the current one.
    await putEach(engine, upTo(10), 8000)
    await begun.promise
    is_full = false
    const put = putOne(engine, 100, 8000)
    // It needs another file by then, and waits for nothing else.
    for (let turns = 0; turns < 20; turns++) await nextTurn()
    gate.resolve()
    await put
  })

  it("leaves the reserved file, and the rest of the current one, to deletes", async () => {
    const { engine, state } = await onFullDisk(freshFolder())
    state.is_full = true
    // Seven of these, four pages each, leave two pages of a file.
    await fill(engine, 0, 15_000)
    const { ids } = await engine.list("", "", 1000)
    let taken = 0
    for (let more = true; more; ) {
      const id = ids[taken % ids.length] ?? assert.fail()
      more = (await tagOf(engine.delete(id, origin, 9n))) === "none"
      if (more) taken += 1
    }
    // A file of 128 KiB has space for thirty batches of a page.
    assert.equal(taken, 32)
  })

  it("accepts deletes right after startup", async () => {
    const dir = freshFolder()
    const first = await opened(dir)
    const ids = await putEach(first, upTo(30))
    await first.close()
    const { engine, state } = await onFullDisk(dir)
    state.is_full = true
    for (const id of ids) await engine.delete(id, origin, 9n)
    assert.equal((await engine.usage()).blob_count, 0)
  })
})

describe("a disk without any space left", () => {
  it("refuses an operation that meets a damaged head like any other", async () => {
    const dir = freshFolder()
    const first = await opened(dir)
    const [id = assert.fail()] = await putEach(first, upTo(3))
    await first.close()
    const [batch = assert.fail()] = batchesIn(dir)
    flip(batch.path, (batch.records[0]?.position ?? 0) + 40)
    const { engine, state } = await onFullDisk(dir)
    state.is_full = true
    const other = await first.list("", "", 10)
    const healthy = other.ids.find((one) => one !== id) ?? assert.fail()
    for (let tag = "none"; tag === "none"; ) tag = await tagOf(engine.delete(healthy, origin, 9n))
    assert.equal(await tagOf(engine.delete(id, origin, 9n)), "BlobCapacityExceeded")
    assert.equal(await tagOf(putOne(engine, 0)), "BlobCapacityExceeded")
    state.is_full = false
    await engine.delete(id, origin, 9n)
    const kinds = (await engine.scan(3, 10)).map(({ kind }) => kind)
    assert.deepEqual(kinds, ["deleted", "quarantined"])
  })
})

describe("the capacity", () => {
  it("holds for concurrent puts", async () => {
    const engine = await opened(freshFolder(), { capacity_bytes: 10_000 })
    const tags = await Promise.all(upTo(30).map((seed) => tagOf(putOne(engine, seed))))
    const stored = tags.filter((tag) => tag === "none").length
    // Each takes about 1,300 bytes of the disk, including its index entry.
    assert(stored === 7 || stored === 8, `${stored} are stored`)
    assert.equal(tags.filter((tag) => tag === "BlobCapacityExceeded").length, 30 - stored)
    const { payload_bytes, used_bytes } = await engine.usage()
    assert.equal(payload_bytes, 1000 * stored)
    assert(used_bytes > 1200 * stored && used_bytes < 11_000, `${used_bytes} bytes`)
  })
})

describe("the journal", () => {
  it("is read in pages of any length, across files and from any cursor", async () => {
    const engine = await opened(freshFolder())
    await putEach(engine, upTo(150))
    await Promise.all(upTo(100, 150).map((seed) => putOne(engine, seed, 10)))
    for (const page of [1, 3, 7, 40, 1000]) {
      const cursors: Array<number> = []
      for (;;) {
        const facts = await engine.scan(cursors.at(-1) ?? 0, page)
        if (facts.length === 0) break
        assert(facts.length <= page)
        cursors.push(...facts.map(({ cursor }) => cursor))
      }
      assert.deepEqual(cursors, upTo(250, 1))
    }
    for (const after of [249, 3, 170, 99, 0, 250]) {
      assert.equal((await engine.scan(after, 1))[0]?.cursor, after === 250 ? undefined : after + 1)
    }
  })
})
