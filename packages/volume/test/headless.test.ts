/**
 * Corruption in the head of a record after the last checkpoint: the tail identifies the blob, so
 * that startup quarantines it and reports it once, and reports nothing that was never stored.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { sendShard, shardOf } from "../../../test/contract/blob-storage/node-engine-copies.ts"
import type { VolumeEngine } from "../engine.ts"
import { batchesIn, type FoundBatch, flip } from "./damaged.ts"
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

const clock = () => 1n
/** Blobs of a volume that will be damaged. */
const count = 6
const others = [0, 1, 3, 4, 5]
const small_bytes = 1000
/** Above an eighth of the segment: stored in an extent file. */
const large_bytes = 100_000

/** Offsets of a head's fields. After 112 come texts, tables and the CRC. */
const fields = {
  magic: 0,
  kind: 4,
  flags: 5,
  policy: 6,
  data_shards: 7,
  head_bytes: 8,
  payload_bytes: 12,
  id: 16,
  hash: 40,
  size: 64,
  at: 72,
  cursor: 80,
  origin_units: 88,
  shard_index: 94,
  origin_bytes: 96,
  label_bytes: 100,
  extents: 104,
  freed: 108,
  texts: 112,
} as const

interface Killed {
  readonly dir: string
  readonly id: BlobId
  readonly batch: FoundBatch
  /** Start and end of the head of the blob's record. */
  readonly start: number
  readonly end: number
}

const batchOf = (dir: string, id: BlobId) => {
  const batch = batchesIn(dir).findLast(({ records }) => records.some((one) => one.id === id))
  const record = batch?.records.find((one) => one.id === id)
  if (!batch || !record) return assert.fail(`there is no record of ${id}`)
  return { batch, start: record.position, end: record.payload }
}

/** Six blobs, one batch each, as a kill leaves them. The third one will be damaged. */
const killed = async (size: number, has_checkpoint = false): Promise<Killed> => {
  const dir = freshFolder()
  const engine = await opened(dir, { clock })
  const ids = await putEach(engine, upTo(count), size)
  if (has_checkpoint) await engine.checkpoint()
  const copy = copyOf(dir)
  const id = ids[2] ?? assert.fail()
  return { dir: copy, id, ...batchOf(copy, id) }
}

const damagedAt = ({ dir, batch }: Killed, position: number) => {
  const copy = copyOf(dir)
  flip(batch.path.replace(dir, copy), position)
  return copy
}

const reportedIn = async (engine: VolumeEngine) =>
  (await engine.scan(0, 100)).filter(({ kind }) => kind === "quarantined")

const upTo = (end: number) => Array.from({ length: end }, (_, seed) => seed)

const again = (dir: string) => opened(dir, { clock })

/**
 * Asserts that the blob is quarantined, reported once with everything in its tail, and put again.
 */
const assertReported = async (engine: VolumeEngine, id: BlobId, size: number) => {
  const facts = await reportedIn(engine)
  assert.deepEqual(
    facts.map((fact) => [fact.cursor, fact.id, fact.size, fact.policy]),
    [[count + 1, id, size, "REPLICATION_POLICY_REPLICA3"]],
  )
  assert.equal(
    Buffer.from(facts[0]?.checksum ?? "", "base64")
      .toString("hex")
      .slice(0, 32),
    id,
  )
  const { blob_count, payload_bytes, quarantined } = await engine.usage()
  assert.deepEqual([blob_count, payload_bytes, quarantined], [5, 5 * size, 1])
  assert.equal(await readOne(engine, 2, size), "BlobNotFound")
  for (const seed of others) assert.equal(await readOne(engine, seed, size), "whole")
  assert.equal((await putOne(engine, 2, size)).created, true)
  assert.equal(await readOne(engine, 2, size), "whole")
}

const assertNoReports = async (engine: VolumeEngine, size: number) => {
  assert.equal((await reportedIn(engine)).length, 1)
  assert.equal(await readOne(engine, 2, size), "whole")
  const { blob_count, payload_bytes, quarantined } = await engine.usage()
  assert.deepEqual([blob_count, payload_bytes, quarantined], [6, 6 * size, 1])
}

describe("a blob with a corrupt head after the last checkpoint", () => {
  for (const [what, size] of Object.entries({ small: small_bytes, large: large_bytes })) {
    it(`is reported once and can be put again, for each field, of a ${what} one`, async () => {
      const life = await killed(size)
      const places = [...Object.values(fields).map((at) => life.start + at), life.end - 4]
      for (const place of places) {
        const dir = damagedAt(life, place)
        const engine = await again(dir)
        await assertReported(engine, life.id, size)
        await assertNoReports(await again(copyOf(dir)), size)
      }
    }, 120_000)
  }

  it("covered by a checkpoint is reported by the read that finds it, once", async () => {
    for (const size of [small_bytes, large_bytes]) {
      const life = await killed(size, true)
      const dir = damagedAt(life, life.start + fields.size)
      const engine = await again(dir)
      assert.equal(await readOne(engine, 2, size), "BlobCorrupt")
      await assertReported(engine, life.id, size)
      await assertNoReports(await again(copyOf(dir)), size)
    }
  })

  it("is reported even if the header of its batch is corrupt too", async () => {
    const life = await killed(small_bytes)
    const dir = damagedAt(life, life.start + fields.hash)
    flip(life.batch.path.replace(life.dir, dir), life.batch.position + 20)
    await assertReported(await again(dir), life.id, small_bytes)
  })

  it("costs no other blob of its batch, and two of them are both reported", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    await putEach(engine, [100])
    await Promise.all(upTo(10).map((seed) => putOne(engine, seed)))
    await putEach(engine, [101])
    const copy = copyOf(dir)
    const batch = batchesIn(copy).find(({ records }) => records.length > 5) ?? assert.fail()
    const hurt = [batch.records[1], batch.records[2]].map((one) => one ?? assert.fail())
    for (const { position } of hurt) flip(batch.path, position + fields.head_bytes)
    const after = await again(copy)
    assert.deepEqual(
      (await reportedIn(after)).map(({ id }) => id).sort(),
      hurt.map(({ id }) => id).sort(),
    )
    const read = await Promise.all(upTo(10).map((seed) => readOne(after, seed)))
    assert.equal(read.filter((answer) => answer === "whole").length, 8)
  })

  it("that is a shard is reported as that shard", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const order = shardOf(noise(1, 10_000), { index: 4, data_shards: 4 })
    await sendShard(engine, order)
    await putEach(engine, [1])
    const copy = copyOf(dir)
    const { batch, start } = batchOf(copy, order.id)
    flip(batch.path, start + fields.id)
    const after = await again(copy)
    assert.deepEqual(
      (await reportedIn(after)).map(({ size, policy, shard }) => [size, policy, shard]),
      [[10_000, order.policy, { index: 4, data_shards: 4, bytes: 2560 }]],
    )
    assert.equal((await after.usage()).payload_bytes, small_bytes)
    await sendShard(after, order)
    assert.equal((await after.usage()).payload_bytes, small_bytes + 2560)
  })
})

describe("a startup that finds a corrupt head", () => {
  it("reports it once, even if it fails or ends before a checkpoint", async () => {
    const life = await killed(small_bytes)
    const dir = damagedAt(life, life.start + fields.at)
    let is_failing = false
    const disk = watchedDisk((step, path) => {
      // The last batch is rewritten and synced; then follows that of the quarantine.
      if (step === "write" && path === life.batch.path.replace(life.dir, dir) && is_failing) {
        throw diskError("EIO")
      }
      if (step === "datasync") is_failing = true
    })
    const problems: Array<string> = []
    const report = (problem: string) => void problems.push(problem)
    const engine = await opened(dir, { clock, report }, disk)
    assert.equal((await engine.usage()).read_only, true)
    assert.equal(await readOne(engine, 2), "BlobNotFound")
    assert.equal((await reportedIn(engine)).length, 0)
    assert(problems.some((problem) => problem.includes(life.id)))
    const copy = copyOf(dir)
    assert.equal((await reportedIn(await again(copy))).length, 1)
    await assertReported(await again(copyOf(copy)), life.id, small_bytes)
  })
})

describe("a corrupt head of an outdated record", () => {
  it("is not reported if the blob was deleted later, or put again", async () => {
    for (const size of [small_bytes, large_bytes]) {
      for (const is_put_again of [false, true]) {
        const dir = freshFolder()
        const engine = await opened(dir, { clock })
        const [id = assert.fail()] = await putEach(engine, [2, 3], size)
        const first = batchOf(dir, id).start
        await engine.delete(id, origin, 9n)
        if (is_put_again) await putOne(engine, 2, size)
        await putEach(engine, [4], size)
        const copy = copyOf(dir)
        const [batch = assert.fail()] = batchesIn(copy)
        flip(batch.path, first + fields.size)
        const after = await again(copy)
        assert.deepEqual(await reportedIn(after), [])
        assert.equal(await readOne(after, 2, size), is_put_again ? "whole" : "BlobNotFound")
        assert.equal((await after.tombstone(id)) === undefined, is_put_again)
        const { payload_bytes, quarantined } = await after.usage()
        assert.deepEqual([payload_bytes, quarantined], [(is_put_again ? 3 : 2) * size, 0])
      }
    }
  })

  it("is not reported if the moved copy is damaged and the previous one is not", async () => {
    const dir = freshFolder()
    let is_compacting = false
    let copy: string | undefined
    // The segments that compaction is about to retire still exist when its checkpoint starts.
    const disk = watchedDisk((_, path) => {
      if (is_compacting && path.includes("checkpoint-")) copy ??= copyOf(dir)
    })
    const engine = await opened(dir, { clock }, disk)
    const ids = await putEach(engine, upTo(120))
    const kept = ids.filter((_, seed) => seed % 30 === 0)
    for (const id of ids) if (!kept.includes(id)) await engine.delete(id, origin, 9n)
    await engine.acknowledge(1000)
    is_compacting = true
    await engine.compact()
    const folder = copy ?? assert.fail("there was no checkpoint")
    const id = kept[0] ?? assert.fail()
    const records = batchesIn(folder).filter((batch) => batch.records.some((one) => one.id === id))
    assert.equal(records.length, 2)
    const { batch, start } = batchOf(folder, id)
    assert((batchesIn(folder).at(-1)?.sequence ?? 0) > batch.sequence)
    flip(batch.path, start + fields.size)
    const after = await again(folder)
    assert.deepEqual(await reportedIn(after), [])
    assert.equal(await readOne(after, 0), "whole")
  })
})

describe("the torn end of a log", () => {
  it("is never reported as a damaged blob, for any missing part of its batch", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { clock })
    const ids = await putEach(engine, [0, 1, 2])
    const { batch, start, end } = batchOf(dir, ids[2] ?? assert.fail())
    const places = [batch.position + 20, start + fields.magic, start + fields.size, end + 30]
    for (const place of places) {
      const copy = copyOf(dir)
      flip(batch.path.replace(dir, copy), place)
      const after = await again(copy)
      assert.deepEqual(await reportedIn(after), [])
      assert.equal((await after.usage()).quarantined, 0)
      assert.equal(await tagOf(after.stat(ids[2] ?? assert.fail())), "BlobNotFound")
      await putEach(after, [3, 4])
      assert.deepEqual(await reportedIn(await again(copyOf(copy))), [])
    }
  })
})
