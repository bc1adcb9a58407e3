/** Contract of every BlobEngine for concurrent callers and for its journal. */
import assert from "node:assert/strict"
import fc from "fast-check"
import type { BlobEngine, BlobFact } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Promised } from "./engine.ts"
import { noise, parts, put, readAll } from "./engine-bytes.ts"

const kib = 1024

const allFacts = async (engine: BlobEngine) => {
  const facts: Array<BlobFact> = []
  for (;;) {
    const page = await engine.scan(facts.at(-1)?.cursor ?? 0, 7)
    if (page.length === 0) return facts
    assert(page.length <= 7)
    facts.push(...page)
  }
}

/** Replays the facts and returns the stored IDs; fails on facts that are out of order. */
const replayed = (facts: ReadonlyArray<BlobFact>) => {
  const ids = new Set<BlobId>()
  for (const { kind, id } of facts) {
    assert.equal(ids.has(id), kind !== "stored", `${kind} of ${id} is out of order`)
    if (kind === "stored") ids.add(id)
    else ids.delete(id)
  }
  return Array.from(ids).sort()
}

const assertJournalAgrees = async (engine: BlobEngine) => {
  const facts = await allFacts(engine)
  const { ids } = await engine.list("", "", 10_000)
  assert.deepEqual(replayed(facts), ids)
  for (const [before, after] of facts.slice(1).map((fact, i) => [facts[i], fact] as const)) {
    assert(before && before.cursor < after.cursor && before.at < after.at)
  }
  assert.equal((await engine.usage()).blob_count, ids.length)
}

export const concurrency = (promised: Promised) => {
  for (const size of [100, 400 * kib]) {
    promised(`many puts of the same ${size} bytes at once store them once`, async (engine) => {
      const bytes = noise(1, size)
      const answers = await Promise.all(
        Array.from({ length: 24 }, (_, caller) => put(engine, parts(bytes, 1000 * (caller + 20)))),
      )
      assert.equal(answers.filter(({ created }) => created).length, 1)
      assert.equal(new Set(answers.map(({ meta }) => meta.created_at)).size, 1)
      const { payload_bytes, blob_count } = await engine.usage()
      assert.deepEqual({ payload_bytes, blob_count }, { payload_bytes: size, blob_count: 1 })
      await assertJournalAgrees(engine)
    })
  }
  promised("many puts of different bytes at once are all stored", async (engine) => {
    const sizes = Array.from({ length: 120 }, (_, seed) => (seed % 6) * 60 * kib + seed)
    const putOne = (size: number, seed: number) => put(engine, parts(noise(seed, size), 50 * kib))
    const answers = await Promise.all(sizes.map(putOne))
    for (const [seed, { id }] of answers.entries()) {
      const bytes = noise(seed, sizes[seed] ?? 0)
      assert((await readAll(engine, id)).equals(bytes))
    }
    await assertJournalAgrees(engine)
  })
  promised(
    "puts, deletes and reads of few blobs at once leave journal and engine agreed",
    async (engine) => {
      const contents = Array.from({ length: 3 }, (_, seed) => noise(seed, 300 * kib * seed + 10))
      const act = async (step: number) => {
        const bytes = contents[step % 3] ?? new Uint8Array(0)
        const { id } = await put(engine, bytes)
        const read = await readAll(engine, id).catch((cause) => faultOf(cause)._tag)
        if (read instanceof Uint8Array) assert(read.equals(bytes))
        else assert.equal(read, "BlobNotFound")
        if (step % 2 === 0) await engine.delete(id, put.origin, 1000n)
      }
      const actFrom = async (first: number) => {
        for (let step = first; step < 120; step += 24) await act(step)
      }
      await Promise.all(Array.from({ length: 24 }, (_, first) => actFrom(first)))
      await assertJournalAgrees(engine)
    },
  )
}

export const journal = (promised: Promised) => {
  promised(
    "the journal names who stored and deleted each blob, in commit order",
    async (engine) => {
      const origin = { actor: "ann", request_id: "r-7", correlation_id: "c-7" }
      const { id, meta } = await put(engine, noise(1, 10), { labels: { a: "1" }, origin })
      await engine.delete(id, put.origin, 1000n)
      const [stored, deleted, ...rest] = await engine.scan(0, 100)
      const { checksum, policy, created_at: at } = meta
      const same = { id, size: 10, checksum, policy }
      const first = { cursor: 1, kind: "stored", ...same, at, labels: { a: "1" } } as const
      assert.deepEqual(stored, { ...first, ...origin })
      const { at: deleted_at, ...fields } = deleted ?? assert.fail("the delete is missing")
      assert.deepEqual(fields, { cursor: 2, kind: "deleted", ...same, ...put.origin })
      assert(deleted_at > at)
      assert.deepEqual(rest, [])
    },
  )
  promised(
    "acknowledged facts are forgotten and their cursors never used again",
    async (engine) => {
      for (const seed of [1, 2, 3]) await put(engine, noise(seed, 10))
      await engine.acknowledge(2)
      await engine.acknowledge(1)
      assert.deepEqual(
        (await engine.scan(0, 10)).map(({ cursor }) => cursor),
        [3],
      )
      await engine.acknowledge(3)
      assert.deepEqual(await engine.scan(0, 10), [])
      await put(engine, noise(4, 10))
      assert.deepEqual(
        (await engine.scan(3, 10)).map(({ cursor }) => cursor),
        [4],
      )
      assert.equal((await engine.usage()).blob_count, 4)
    },
  )
  promised("any history of puts and deletes leaves what a plain set would hold", async (engine) => {
    const step = fc.tuple(fc.constantFrom("put", "delete"), fc.nat(5))
    const ids = new Set<BlobId>()
    const holds = async (history: ReadonlyArray<readonly [string, number]>) => {
      for (const [verb, seed] of history) {
        const bytes = noise(seed, seed * 70_000)
        const { id, created } = await put(engine, bytes)
        assert.equal(created, !ids.has(id))
        ids.add(id)
        if (verb === "put") continue
        await engine.delete(id, put.origin, 1000n)
        ids.delete(id)
      }
      const page = await engine.list("", "", 100)
      assert.deepEqual(page.ids, Array.from(ids).sort())
      const usage = await engine.usage()
      const sizes = await Promise.all(page.ids.map((id) => engine.stat(id)))
      assert.equal(
        usage.payload_bytes,
        sizes.reduce((sum, { size }) => sum + Number(size), 0),
      )
    }
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), holds)
    await fc.assert(property, { numRuns: 25, endOnFailure: true })
    await assertJournalAgrees(engine)
  })
}
