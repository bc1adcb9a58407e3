/**
 * A deleted blob stays deleted, even if the disk damages one of the records that say so. Each
 * volume is opened as a kill leaves it, without a checkpoint: only the log counts.
 */
import assert from "node:assert/strict"
import { readFileSync, writeFileSync } from "node:fs"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { VolumeEngine } from "../engine.ts"
import { batchesIn, type FoundBatch, flip, loseCheckpoints } from "./damaged.ts"
import { copyOf, freshFolder, opened, origin, putOne, readOne } from "./opened.ts"

const small = 100
const deleted = 2

const recordOf = ({ records }: FoundBatch, id: BlobId) =>
  records.find((record) => record.id === id) ?? assert.fail("the batch has no record of it")

/** Writes a batch over the start of another one, and leaves nothing in its own place. */
const goAstray = ({ path, position, bytes }: FoundBatch, onto: FoundBatch) => {
  const all = readFileSync(path)
  const batch = Buffer.from(all.subarray(position, position + bytes))
  all.fill(0, position, position + bytes)
  batch.copy(all, onto.position)
  writeFileSync(path, all)
}

/** The batches of a volume that put seeds 1, 2 and 3, deleted 2, and then did something else. */
const volume = async (then: (engine: VolumeEngine, id: BlobId) => Promise<unknown>) => {
  const dir = freshFolder()
  const engine = await opened(dir)
  const ids = []
  for (const seed of [1, deleted, 3]) ids.push((await putOne(engine, seed, small)).id)
  const id = ids[1] ?? assert.fail()
  await engine.delete(id, origin, 9n)
  await then(engine, id)
  const killed = copyOf(dir)
  loseCheckpoints(killed)
  return { id, dir: killed, batches: batchesIn(killed) }
}

const nth = (batches: ReadonlyArray<FoundBatch>, n: number) =>
  batches[n] ?? assert.fail(`there is no batch ${n}`)

const assertDeleted = async (engine: VolumeEngine, id: BlobId) => {
  assert.equal(await readOne(engine, deleted, small), "BlobNotFound")
  assert.notEqual(await engine.tombstone(id), undefined)
  assert(!(await engine.list("", "", 10)).ids.includes(id))
}

describe("a delete", () => {
  it("is recorded in two batches, and either is enough", async () => {
    const { id, dir, batches } = await volume((engine) => putOne(engine, 4, small))
    assert.equal(batches.length, 5)
    for (const n of [3, 4]) {
      const copy = copyOf(dir)
      const { path } = nth(batches, n)
      flip(path.replace(dir, copy), recordOf(nth(batches, n), id).position + 20)
      const engine = await opened(copy)
      await assertDeleted(engine, id)
      // The last batch may be torn, so it was not acknowledged: its blob is lost with it.
      assert.equal((await engine.usage()).payload_bytes, (n === 4 ? 2 : 3) * small)
    }
  })
  it("is repeated with its time, until another operation on the id", async () => {
    const { id, dir, batches } = await volume(async (engine, one) => {
      await putOne(engine, deleted, small)
      await engine.delete(one, origin, 10n)
      await putOne(engine, 4, small)
      await putOne(engine, 5, small)
    })
    const counts = batches.map(({ records }) => records.filter((record) => record.id === id).length)
    assert.deepEqual(counts, [0, 1, 0, 1, 1, 1, 1, 0])
    const facts = await (await opened(dir)).scan(0, 20)
    const kinds = facts.filter((fact) => fact.id === id).map(({ kind }) => kind)
    assert.deepEqual(kinds, ["stored", "deleted", "stored", "deleted"])
  })
  it("is repeated after a restart, if no batch followed it before", async () => {
    const { id, dir } = await volume(async () => {})
    const engine = await opened(dir)
    await putOne(engine, 4, small)
    const last = nth(batchesIn(dir), 4)
    assert.equal(recordOf(last, id).id, id)
  })
  it("survives the next batch being written over it", async () => {
    const { id, dir, batches } = await volume(async (engine) => {
      await putOne(engine, 4, small)
      await putOne(engine, 5, small)
    })
    goAstray(nth(batches, 4), nth(batches, 3))
    const engine = await opened(dir)
    await assertDeleted(engine, id)
    assert.equal(await readOne(engine, 4, small), "whole")
    assert.equal(await readOne(engine, 5, small), "whole")
  })
  it("found before its put in the log still counts as the later one", async () => {
    const { id, dir, batches } = await volume(async () => {})
    goAstray(nth(batches, 3), nth(batches, 0))
    const engine = await opened(dir)
    await assertDeleted(engine, id)
    assert.equal(await readOne(engine, 3, small), "whole")
  })
})
