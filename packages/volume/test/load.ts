/**
 * A volume under loads of several minutes: millions of small blobs and a restart, deletes and
 * compaction with concurrent reads, and blobs larger than memory. Prints figures and asserts
 * invariants.
 */
import assert from "node:assert/strict"
import { readdirSync, rmSync, statfsSync, statSync } from "node:fs"
import { join } from "node:path"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { openFolder, order, origin } from "./kill-folder.ts"

type Engine = Awaited<ReturnType<typeof openFolder>>

const kib = 1024
const mib = 1024 * kib
const gib = 1024 * mib
const segment_bytes = 64 * mib
const writers = 256
/** Goal: 70 bytes of memory per blob. */
const index_bytes_max = 70
const looked_at = 10_000
const deletes = 100_000
const deleted_blob_bytes = 4 * kib
const large_bytes = 5 * gib
/** Maximum memory that streaming adds to the process, for any size of blob. */
const growth_bytes_max = 256 * mib
/** Free space that a disk must have before the start. */
const free_bytes_min = 20 * gib

const say = (line: string) => console.log(`soak: volume: ${line}`)

/** Returns the result of the work and prints its duration. */
const timed = async <A>(what: (seconds: number) => string, work: () => Promise<A>): Promise<A> => {
  const since = performance.now()
  const answer = await work()
  say(what((performance.now() - since) / 1000))
  return answer
}

/** Does `work` for each number below `count`, with limited concurrency. */
const each = async (count: number, work: (n: number) => Promise<unknown>) => {
  let next = 0
  const write = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: writers }, write))
}

/** A small blob that differs for each number. */
const smallBytes = (n: number) => {
  const bytes = new Uint8Array(40 + (n % 60))
  new DataView(bytes.buffer).setFloat64(0, n)
  return bytes
}

const mb = (bytes: number) => `${Math.round(bytes / mib)} MiB`
const memory = () => mb(process.memoryUsage.rss())

/** The apparent size of the files in a folder. */
const bytesIn = (dir: string) =>
  readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0)

const lookAt = async (engine: Engine, ids: ReadonlyArray<BlobId>, step: number) => {
  await each(ids.length, async (n) => {
    const id = ids[n]
    assert(id !== undefined)
    const { data } = await engine.get(id, {}, 0n)
    assert(Buffer.from(data ?? []).equals(smallBytes(n * step)))
  })
}

/** Puts this many small blobs, and restarts with the checkpoint and without. */
const restartSmall = async (dir: string, count: number) => {
  const step = Math.max(1, Math.floor(count / looked_at))
  const ids: Array<BlobId> = []
  let engine = await openFolder(dir, segment_bytes)
  const fill = () =>
    each(count, async (n) => {
      const { id } = await engine.put(order, [smallBytes(n)], 0n)
      if (n % step === 0) ids[n / step] = id
    })
  await timed((s) => `${count} small blobs put, ${Math.round(count / s)} a second`, fill)
  const bytes = engine.status().index_bytes / count
  say(`${bytes.toFixed(1)} bytes of index a blob; ${memory()} resident`)
  assert(count < 100_000 || bytes <= index_bytes_max, `${bytes} bytes of index a blob`)
  await timed(
    (s) => `closed in ${s.toFixed(1)} s`,
    () => engine.close(),
  )
  const reopened = (how: string) => (s: number) =>
    `opened again ${how} in ${s.toFixed(1)} s (${((s * 1e6) / count).toFixed(2)} s a million)`
  const open = () => openFolder(dir, segment_bytes)
  engine = await timed(reopened("by its checkpoint"), open)
  assert.equal((await engine.usage()).blob_count, count)
  await lookAt(engine, ids, step)
  await engine.close()
  for (const name of ["checkpoint-1", "checkpoint-2"]) rmSync(join(dir, name))
  engine = await timed(reopened("by its whole log"), open)
  assert.equal((await engine.usage()).blob_count, count)
  await lookAt(engine, ids, step)
  say(`${memory()} resident`)
  await engine.close()
}

/** Deletes by the hundred thousand and compacts, while readers read what stays. */
const deleteAndCompact = async (dir: string) => {
  const engine = await openFolder(dir, segment_bytes)
  const bytesOf = (n: number) => noise(n, deleted_blob_bytes)
  const ids: Array<BlobId> = []
  await timed(
    (s) => `${2 * deletes} blobs of 4 KiB put, ${Math.round((2 * deletes) / s)} a second`,
    () =>
      each(2 * deletes, async (n) => {
        ids[n] = (await engine.put(order, [bytesOf(n)], 0n)).id
      }),
  )
  let is_over = false
  let reads = 0
  const reader = async (first: number) => {
    for (let n = first; !is_over; n = (n + 2 * writers) % (2 * deletes)) {
      const id = ids[n + (n % 2 === 0 ? 1 : 0)]
      assert(id !== undefined)
      const { data } = await engine.get(id, {}, 0n)
      assert.equal(data?.length, deleted_blob_bytes)
      reads++
    }
  }
  const readers = [1, 3, 5, 7].map(reader)
  await timed(
    (s) => `${deletes} of them deleted, ${Math.round(deletes / s)} a second`,
    () => each(deletes, (n) => engine.delete(ids[2 * n] ?? assert.fail(), origin, 0n)),
  )
  const facts = 3 * deletes
  await engine.acknowledge(facts)
  const before = engine.status()
  await timed(
    (s) => `compacted in ${s.toFixed(1)} s, ${reads} reads meanwhile and before`,
    () => engine.compact(),
  )
  is_over = true
  await Promise.all(readers)
  const after = engine.status()
  say(`${before.log_files} log files before, ${after.log_files} after`)
  assert(after.log_files < before.log_files, "compaction gives files back")
  await engine.close()
  const again = await openFolder(dir, segment_bytes)
  assert.equal((await again.usage()).blob_count, deletes)
  await each(deletes, async (n) => {
    const { data } = await again.get(ids[2 * n + 1] ?? assert.fail(), {}, 0n)
    assert(Buffer.from(data ?? []).equals(bytesOf(2 * n + 1)))
  })
  await again.close()
}

/**
 * One blob larger than most memories: stored, read, deleted, and stored again in the same space.
 */
const storeLarge = async (dir: string) => {
  let engine = await openFolder(dir, segment_bytes)
  const piece = Buffer.from(noise(1, mib))
  const before = process.memoryUsage.rss()
  let highest = before
  const look = () => {
    highest = Math.max(highest, process.memoryUsage.rss())
  }
  const put = async () => {
    const upload = engine.upload(order, undefined)
    for (let at = 0; at < large_bytes; at += mib) {
      const bytes = Buffer.from(piece)
      bytes.writeUInt32LE(at / mib, 0)
      await upload.write(bytes)
      look()
    }
    return upload.finish(0n)
  }
  const rate = (what: string) => (s: number) =>
    `5 GiB ${what} in ${s.toFixed(1)} s (${Math.round(large_bytes / mib / s)} MiB/s)`
  const { id, meta } = await timed(rate("put"), put)
  await engine.close()
  engine = await openFolder(dir, segment_bytes)
  const hasher = new Blake3Hasher()
  const read = async () => {
    const reading = await engine.get(id, {}, 0n)
    for await (const window of reading.windows()) {
      hasher.update(window)
      look()
    }
  }
  await timed(rate("read"), read)
  assert.equal(hasher.digest("base64"), meta.checksum)
  const held_bytes = bytesIn(dir)
  await engine.delete(id, origin, 0n)
  await timed(rate("put again"), put)
  say(`${mb(bytesIn(dir))} on disk, ${mb(held_bytes)} before`)
  assert(bytesIn(dir) <= 1.5 * held_bytes, "the room is not used again")
  assert.equal((await engine.usage()).payload_bytes, large_bytes)
  await engine.close()
  say(`memory grew by ${mb(highest - before)} over ${mb(before)}`)
  assert(highest - before <= growth_bytes_max, "memory grows with a blob")
}

/**
 * Runs all of them, each in a folder that is removed afterwards. Rejects at the first violation.
 */
export const soakLoad = async (folder: string, small_count: number) => {
  const { bavail, bsize } = statfsSync(folder)
  assert(bavail * bsize > free_bytes_min, `${folder} has less than ${mb(free_bytes_min)} free`)
  const parts = {
    small: (dir: string) => restartSmall(dir, small_count),
    deletes: deleteAndCompact,
    large: storeLarge,
  }
  for (const [name, part] of Object.entries(parts)) {
    const dir = join(folder, name)
    await part(dir)
    rmSync(dir, { recursive: true, force: true })
  }
}
