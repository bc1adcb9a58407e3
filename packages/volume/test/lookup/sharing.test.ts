/** What other threads see of a volume: its index in shared memory, and its files. */
import assert from "node:assert/strict"
import { once } from "node:events"
import { readdirSync, readlinkSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import fc from "fast-check"
import { describe, it, onTestFinished, vi } from "vitest"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { VolumeEngine } from "../../engine.ts"
import { makeIndex } from "../../lookup/map.ts"
import { makeSharedIndex, makeSharedReads, unsure } from "../../lookup/shared-reads.ts"
import { makeVolumeNews, type VolumeNews } from "../../lookup/sharing.ts"
import type { Pin } from "../../reads/reads.ts"
import { bytesOf, freshFolder, opened, order, origin, putEach, putOne } from "../opened.ts"
import { flipBit } from "../volume-folder.ts"
import { idOf, placeOf } from "./shared-entry.ts"

const kib = 1024
const mib = 1024 * kib
const at = 5000n

const nobody: Pin = () => undefined

/** An index and what a thread has of it; news arrive when they are told to. */
const sharedIndex = (seed: number) => {
  const news = makeVolumeNews()
  const index = makeIndex([], seed, news.watched.replaced)
  const waiting: Array<VolumeNews> = []
  const sharing = news.sharing({ dir: "/", seed, index }, nobody)
  const { volume } = sharing.watch((one) => void waiting.push(one))
  const seen = makeSharedIndex(volume)
  const hear = () => {
    for (const one of waiting.splice(0)) if (one.news === "bucket") seen.take(one.bucket)
  }
  return { index, seen, hear }
}

const lookUp = (seen: ReturnType<typeof makeSharedIndex>, id: string) => {
  try {
    return seen.find(id)
  } catch (cause) {
    assert.equal(cause, unsure)
    return "unsure"
  }
}

describe("an index that threads share", () => {
  it("shows what it holds, or that it is to be asked; never what it held before", () => {
    const step = fc.record({
      number: fc.nat(4000),
      many: fc.integer({ min: 1, max: 700 }),
      is_removal: fc.boolean(),
      is_heard: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), fc.integer(), (steps, seed) => {
        const { index, seen, hear } = sharedIndex(seed)
        for (const { number, many, is_removal, is_heard } of steps) {
          for (let n = number; n < number + many; n++) {
            if (is_removal) index.remove(idOf(n))
            else index.set(idOf(n), placeOf(n))
          }
          if (is_heard) hear()
          for (let n = number; n < number + many; n += 13) {
            const found = lookUp(seen, idOf(n))
            if (found === "unsure") assert(!is_heard, "it was told of every table")
            else assert.deepEqual(found, index.find(idOf(n)))
          }
        }
        hear()
        for (let n = 0; n < 4700; n += 7) {
          assert.deepEqual(lookUp(seen, idOf(n)), index.find(idOf(n)))
        }
      }),
      { numRuns: 60 },
    )
  })

  it("begins with all that there is, in tables of whatever depth", () => {
    const news = makeVolumeNews()
    const index = makeIndex([], 3, news.watched.replaced)
    for (let n = 0; n < 20_000; n++) index.set(idOf(n), placeOf(n))
    const { volume } = news.sharing({ dir: "/", seed: 3, index }, nobody).watch(() => undefined)
    assert(volume.buckets.length > 8)
    const seen = makeSharedIndex(volume)
    for (let n = 0; n < 20_000; n += 3) assert.deepEqual(seen.find(idOf(n)), placeOf(n))
    assert.equal(seen.find(idOf(20_001)), undefined)
  })

  it("is not looked into while it changes", () => {
    const { index, seen } = sharedIndex(1)
    index.set(idOf(1), placeOf(1))
    const [bucket] = index.buckets()
    assert(bucket)
    const version = bucket.table.words.length - 1
    Atomics.add(bucket.table.words, version, 1)
    assert.throws(() => seen.find(idOf(1)), unsure)
    Atomics.add(bucket.table.words, version, 1)
    assert.deepEqual(seen.find(idOf(1)), placeOf(1))
  })

  it("shows another thread no half of a change, however fast it changes", async () => {
    const news = makeVolumeNews()
    const index = makeIndex([], 5, news.watched.replaced)
    const changing = 6000
    for (let n = 0; n < changing; n++) index.set(idOf(n), placeOf(n))
    const { volume } = news.sharing({ dir: "/", seed: 5, index }, nobody).watch((one) => {
      if (one.news === "bucket") reader.postMessage(one.bucket)
    })
    const reader = new Worker(join(import.meta.dirname, "hold-index-reader.ts"), {
      workerData: { volume, changing },
    })
    onTestFinished(async () => void (await reader.terminate()))
    await once(reader, "message")
    const over = performance.now() + 1500
    for (let round = 1; performance.now() < over; round++) {
      for (let n = 1; n < changing; n += 2) {
        if ((n + round) % 5 === 0) index.remove(idOf(n))
        else index.set(idOf(n), placeOf(n, round))
      }
      // New ones, for which tables grow and are split.
      for (let n = 0; n < 20; n++) index.set(idOf(1_000_000 + 20 * round + n), placeOf(n))
      await new Promise(setImmediate)
    }
    const told = once(reader, "message")
    reader.postMessage("over")
    const [seen] = await told
    assert.deepEqual(seen.wrong.slice(0, 5), [])
    assert(seen.found > 10_000 && seen.absent > 100, JSON.stringify(seen))
  }, 30_000)

  it("costs nothing where nobody shares it: its tables are as they were", () => {
    const index = makeIndex()
    index.set(idOf(1), placeOf(1))
    const [bucket] = index.buckets()
    assert.equal(bucket?.table.words.length, 7 * (bucket?.table.capacity ?? 0))
    assert(!(bucket?.table.words.buffer instanceof SharedArrayBuffer))
  })
})

/** A volume with a thread's view of it, which hears of everything at once. */
const shared = async (dir = freshFolder(), changes = {}) => {
  const engine = await opened(dir, { is_shared: true, ...changes })
  const { sharing } = engine
  assert(sharing)
  const pins = { held: 0 }
  const pin: Pin = async (...pinned) => {
    const unpin = await sharing.pin(...pinned)
    if (unpin === undefined) return undefined
    pins.held += 1
    return () => {
      pins.held -= 1
      unpin()
    }
  }
  const watching = sharing.watch((news) => reads.hear(news))
  const reads = makeSharedReads(watching.volume, pin)
  onTestFinished(() => {
    watching.end()
    reads.close()
  })
  return { engine, reads, pins, dir }
}

const readBy = async (
  { get }: Pick<VolumeEngine, "get">,
  id: BlobId,
  range: { offset?: number; length?: number } = {},
) => {
  try {
    const { data, windows } = await get(id, range, at)
    return data ?? Buffer.concat(await Array.fromAsync(windows()))
  } catch (cause) {
    return cause === unsure ? "unsure" : faultOf(cause)._tag
  }
}

/** Where a link leads; nowhere where it is gone by now. */
const targetOf = (link: string) => {
  try {
    return readlinkSync(link)
  } catch {
    return ""
  }
}

const isSame = (found: Uint8Array | string, expected: Uint8Array) =>
  assert(typeof found !== "string" && Buffer.from(found).equals(expected), String(found))

describe("a volume that another thread reads", () => {
  for (const size of [0, 1, 4 * kib, 16 * kib, 300 * kib, 3 * mib]) {
    it(`shows a blob of ${size} bytes, all of it and any part`, async () => {
      const { engine, reads, pins } = await shared()
      const { id } = await putOne(engine, 7, size)
      isSame(await readBy(reads, id), bytesOf(7, size))
      for (const [offset, length] of [
        [0, 10],
        [5, 100_000],
        [size - 3, 10],
        [size + 5, 10],
      ] as const) {
        const range = { offset: Math.max(0, offset), length }
        const expected = bytesOf(7, size).subarray(range.offset, range.offset + length)
        isSame(await readBy(reads, id, range), expected)
      }
      assert.deepEqual(await reads.stat(id, at), await engine.stat(id))
      assert.equal(pins.held, 0)
    })
  }

  it("shows what it says of a blob as the volume itself does", async () => {
    const { engine, reads } = await shared()
    const labels = { a: "é", b: "2" }
    const { id } = await engine.put({ ...order, labels }, [bytesOf(1)], 77n)
    const { meta } = await reads.get(id, {}, at)
    assert.deepEqual(meta, (await engine.get(id, {}, at)).meta)
    assert.deepEqual(meta.labels, labels)
  })

  it("has at hand what was read lately", async () => {
    const { engine, reads } = await shared()
    const { id } = await putOne(engine, 3)
    assert.equal(reads.getNow(id), undefined)
    await reads.get(id, {}, at)
    await reads.get(id, {}, at)
    isSame(reads.getNow(id)?.data ?? "nothing", bytesOf(3))
  })

  it("shows nothing from the answer to its deletion on, and what was put again", async () => {
    const { engine, reads } = await shared()
    const { id } = await putOne(engine, 3)
    const large = await putOne(engine, 4, 300 * kib)
    isSame(await readBy(reads, id), bytesOf(3))
    await engine.delete(id, origin, at)
    await engine.delete(large.id, origin, at)
    assert.equal(await readBy(reads, id), "BlobNotFound")
    assert.equal(reads.getNow(id), undefined)
    assert.equal(await readBy(reads, large.id), "BlobNotFound")
    await engine.put(order, [bytesOf(3)], at + 10n)
    isSame(await readBy(reads, id), bytesOf(3))
  })

  it("follows blobs that compaction moves, and files that are used anew", async () => {
    const { engine, reads } = await shared()
    const seeds = Array.from({ length: 300 }, (_, seed) => seed)
    const ids = await putEach(engine, seeds, 2000)
    for (const id of ids) await readBy(reads, id)
    for (let round = 0; round < 3; round++) {
      for (const [seed, id] of ids.entries()) {
        if (seed % 4 !== round) continue
        await engine.delete(id, origin, at)
        ids[seed] = (await putOne(engine, seed + 1000 * (round + 1), 2000)).id
      }
      await engine.acknowledge(10_000)
      await engine.compact()
      await engine.checkpoint()
      for (const [seed, id] of ids.entries()) {
        const last = seed % 4 < round + 1 && seed % 4 <= 2 ? seed + 1000 * ((seed % 4) + 1) : seed
        isSame(await readBy(reads, id), bytesOf(last, 2000))
      }
    }
  })

  it("lets go of files that are removed, whose room the disk has back then", async () => {
    const { engine, reads, dir } = await shared()
    const isRemoved = (fd: string) => {
      const target = targetOf(`/proc/self/fd/${fd}`)
      return target.startsWith(dir) && target.endsWith("(deleted)")
    }
    const files = () => readdirSync(dir).filter((name) => name.endsWith(".seg")).length
    const seeds = Array.from({ length: 8 }, (_, seed) => seed)
    const ids = await putEach(engine, seeds, 300 * kib)
    for (const id of ids) await readBy(reads, id)
    const before = files()
    for (const id of ids) await engine.delete(id, origin, at)
    await engine.acknowledge(10_000)
    await engine.compact()
    await vi.waitFor(() => assert(files() < before, "files are removed"))
    await vi.waitFor(() => assert.deepEqual(readdirSync("/proc/self/fd").filter(isRemoved), []))
  })

  it("leaves to its own thread what does not hold: a flipped bit, a lost file", async () => {
    const { engine, reads, dir } = await shared()
    const small = await putOne(engine, 1)
    const large = await putOne(engine, 2, 300 * kib)
    const sound = await putOne(engine, 3)
    flipBit(dir, bytesOf(1).subarray(100, 132))
    flipBit(dir, bytesOf(2, 300 * kib).subarray(200_000, 200_032))
    assert.equal(await readBy(reads, small.id), "unsure")
    assert.equal(await readBy(reads, large.id), "unsure")
    isSame(await readBy(reads, sound.id), bytesOf(3))
    // Nothing was set aside for what a thread has seen.
    assert.equal((await engine.usage()).quarantined, 0)
    assert.equal(await readBy(engine, small.id), "BlobCorrupt")
    assert.equal(await readBy(reads, small.id), "BlobNotFound")
    for (const name of readdirSync(dir)) if (name.startsWith("log-")) rmSync(join(dir, name))
    reads.close()
    assert.equal(await readBy(reads, sound.id), "unsure")
  })

  it("keeps a large blob's bytes until its reader has them, though it is deleted", async () => {
    const { engine, reads, pins } = await shared()
    const size = 6 * mib
    const { id } = await putOne(engine, 5, size)
    const reading = await reads.get(id, {}, at)
    const windows = reading.windows()
    const first = await windows.next()
    assert(!first.done)
    assert.equal(pins.held, 1)
    await engine.delete(id, origin, at)
    await engine.acknowledge(10_000)
    for (let seed = 100; seed < 104; seed++) await putOne(engine, seed, size)
    await engine.compact()
    const rest = await Array.fromAsync(windows)
    isSame(Buffer.concat([first.value, ...rest]), bytesOf(5, size))
    assert.equal(pins.held, 0)
  })
})
