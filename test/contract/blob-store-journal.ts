/**
 * What every BlobStore promises about many callers at once, and about its journal.
 */
import assert from "node:assert/strict"
import { Effect, Result } from "effect"
import fc from "fast-check"
import type { BlobFact } from "#actors/blob-storage/blobs/store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Promised, Store } from "./blob-store.ts"
import { noise, parts, put, readAll } from "./blob-store-bytes.ts"

const kib = 1024

const allFacts = (store: Store) =>
  Effect.gen(function* () {
    const facts: Array<BlobFact> = []
    for (;;) {
      const page = yield* store.scan(facts.at(-1)?.cursor ?? 0, 7)
      if (page.length === 0) return facts
      assert(page.length <= 7)
      facts.push(...page)
    }
  })

/** The IDs that are stored once the facts have happened; facts that cannot follow are an error. */
const replayed = (facts: ReadonlyArray<BlobFact>) => {
  const ids = new Set<BlobId>()
  for (const { kind, id } of facts) {
    assert.equal(ids.has(id), kind !== "stored", `${kind} of ${id} is out of order`)
    if (kind === "stored") ids.add(id)
    else ids.delete(id)
  }
  return Array.from(ids).sort()
}

const assertJournalAgrees = (store: Store) =>
  Effect.gen(function* () {
    const facts = yield* allFacts(store)
    const { ids } = yield* store.list({ limit: 10_000 })
    assert.deepEqual(replayed(facts), ids)
    for (const [before, after] of facts.slice(1).map((fact, i) => [facts[i], fact] as const)) {
      assert(before && before.cursor < after.cursor && before.at < after.at)
    }
    assert.equal((yield* store.usage).blob_count, ids.length)
  })

export const concurrency = (promised: Promised) => {
  for (const size of [100, 400 * kib]) {
    promised(`many puts of the same ${size} bytes at once store them once`, (store) =>
      Effect.gen(function* () {
        const bytes = noise(1, size)
        const answers = yield* Effect.all(
          Array.from({ length: 24 }, (_, caller) => put(store, parts(bytes, 1000 * (caller + 20)))),
          { concurrency: "unbounded" },
        )
        assert.equal(answers.filter(({ created }) => created).length, 1)
        assert.equal(new Set(answers.map(({ meta }) => meta.created_at)).size, 1)
        const { payload_bytes, blob_count } = yield* store.usage
        assert.deepEqual({ payload_bytes, blob_count }, { payload_bytes: size, blob_count: 1 })
        yield* assertJournalAgrees(store)
      }),
    )
  }
  promised("many puts of different bytes at once are all stored", (store) =>
    Effect.gen(function* () {
      const sizes = Array.from({ length: 120 }, (_, seed) => (seed % 6) * 60 * kib + seed)
      const answers = yield* Effect.all(
        sizes.map((size, seed) => put(store, parts(noise(seed, size), 50 * kib))),
        { concurrency: 40 },
      )
      for (const [seed, { id }] of answers.entries()) {
        const bytes = noise(seed, sizes[seed] ?? 0)
        assert(Buffer.from(yield* readAll(store, id)).equals(bytes))
      }
      yield* assertJournalAgrees(store)
    }),
  )
  promised("puts, deletes and reads of few blobs at once leave journal and store agreed", (store) =>
    Effect.gen(function* () {
      const contents = Array.from({ length: 3 }, (_, seed) => noise(seed, 300 * kib * seed + 10))
      const act = (step: number) =>
        Effect.gen(function* () {
          const bytes = contents[step % 3] ?? new Uint8Array(0)
          const { id } = yield* put(store, bytes)
          const read = yield* Effect.result(readAll(store, id))
          if (Result.isSuccess(read)) assert(Buffer.from(read.success).equals(bytes))
          else assert.equal(read.failure._tag, "BlobNotFound")
          if (step % 2 === 0) yield* store.delete(id, put.origin)
        })
      yield* Effect.all(
        Array.from({ length: 120 }, (_, step) => act(step)),
        { concurrency: 24 },
      )
      yield* assertJournalAgrees(store)
    }),
  )
}

export const journal = (promised: Promised) => {
  promised("the journal tells who stored and deleted what, in commit order", (store) =>
    Effect.gen(function* () {
      const origin = { actor: "ann", request_id: "r-7", correlation_id: "c-7" }
      const { id, meta } = yield* put(store, noise(1, 10), { labels: { a: "1" }, origin })
      yield* store.delete(id, put.origin)
      const [stored, deleted, ...rest] = yield* store.scan(0, 100)
      const { checksum, policy, created_at: at } = meta
      const same = { id, size: 10, checksum, policy }
      const first = { cursor: 1, kind: "stored", ...same, at, labels: { a: "1" } } as const
      assert.deepEqual(stored, { ...first, ...origin })
      const { at: deleted_at, ...told } = deleted ?? assert.fail("the delete is missing")
      assert.deepEqual(told, { cursor: 2, kind: "deleted", ...same, ...put.origin })
      assert(deleted_at > at)
      assert.deepEqual(rest, [])
    }),
  )
  promised("acknowledged facts are forgotten and their cursors never used again", (store) =>
    Effect.gen(function* () {
      for (const seed of [1, 2, 3]) yield* put(store, noise(seed, 10))
      yield* store.acknowledge(2)
      yield* store.acknowledge(1)
      assert.deepEqual(
        (yield* store.scan(0, 10)).map(({ cursor }) => cursor),
        [3],
      )
      yield* store.acknowledge(3)
      assert.deepEqual(yield* store.scan(0, 10), [])
      yield* put(store, noise(4, 10))
      assert.deepEqual(
        (yield* store.scan(3, 10)).map(({ cursor }) => cursor),
        [4],
      )
      assert.equal((yield* store.usage).blob_count, 4)
    }),
  )
  promised("any history of puts and deletes leaves what a plain set would hold", (store) =>
    Effect.gen(function* () {
      const step = fc.tuple(fc.constantFrom("put", "delete"), fc.nat(5))
      const ids = new Set<BlobId>()
      const holds = async (history: ReadonlyArray<readonly [string, number]>) => {
        for (const [verb, seed] of history) {
          const bytes = noise(seed, seed * 70_000)
          const { id, created } = await Effect.runPromise(put(store, bytes))
          assert.equal(created, !ids.has(id))
          ids.add(id)
          if (verb === "put") continue
          await Effect.runPromise(store.delete(id, put.origin))
          ids.delete(id)
        }
        const page = await Effect.runPromise(store.list({ limit: 100 }))
        assert.deepEqual(page.ids, Array.from(ids).sort())
        const usage = await Effect.runPromise(store.usage)
        const sizes = await Effect.runPromise(Effect.all(page.ids.map((id) => store.stat(id))))
        assert.equal(
          usage.payload_bytes,
          sizes.reduce((sum, { size }) => sum + Number(size), 0),
        )
      }
      const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), holds)
      yield* Effect.promise(() => fc.assert(property, { numRuns: 25, endOnFailure: true }))
      yield* assertJournalAgrees(store)
    }),
  )
}
