/**
 * What every BlobStore promises, run over each adapter. Properties print their seed when they fail.
 */
import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { blake3 } from "@napi-rs/blake-hash"
import { Deferred, Effect, Fiber, type Layer, Stream, Struct } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { type BlobFact, BlobStore } from "#actors/blob-storage/blobs/store.ts"
import { type BlobId, get_chunk_bytes_max } from "#schemas/blob-storage/blob.ts"
import { bytesOf, noise, parts, plain, put, readAll } from "./blob-store-bytes.ts"

export interface BlobStoreLimits {
  readonly capacity_bytes: number
  readonly size_max_bytes?: number
}
type Store = BlobStore["Service"]
type LayerOf = (limits: BlobStoreLimits) => Layer.Layer<BlobStore, unknown>
type Promised = (
  sentence: string,
  body: (store: Store) => Effect.Effect<void, unknown>,
  limits?: BlobStoreLimits,
) => void

const roomy: BlobStoreLimits = { capacity_bytes: 1024 ** 3 }
const kib = 1024
const mib = 1024 * kib

const tagOf = (effect: Effect.Effect<unknown, { readonly _tag: string }>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

const kinds = (facts: ReadonlyArray<BlobFact>) => facts.map(({ kind, id }) => `${kind} ${id}`)

const assertEmpty = (store: Store) =>
  Effect.gen(function* () {
    const { payload_bytes, blob_count, read_only } = yield* store.usage
    assert.deepEqual({ payload_bytes, blob_count, read_only }, plain)
    assert.deepEqual(yield* store.list({ limit: 10 }), { ids: [], has_more: false })
    assert.deepEqual(yield* store.scan(0, 10), [])
  })

const identity = (promised: Promised) => {
  promised("a blob's ID is the first half of its BLAKE3-256", (store) =>
    Effect.gen(function* () {
      const { id, meta } = yield* put(store, new TextEncoder().encode("abc"))
      assert.equal(id, "6437b3ac38465133ffb63b75273a8db5")
      const checksum = Buffer.from(meta.checksum, "base64").toString("hex")
      assert.equal(checksum, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85")
      const empty = yield* put(store, new Uint8Array(0))
      assert.equal(empty.id, "af1349b9f5f9a1a6a0404dea36dcc949")
    }),
  )
  const sizes = [0, 1, 64 * kib - 1, 64 * kib, 64 * kib + 1, 256 * kib, 256 * kib + 1]
  const larger = [get_chunk_bytes_max, get_chunk_bytes_max + 1, 3 * mib, 5 * mib + 17]
  for (const size of [...sizes, ...larger]) {
    promised(`a blob of ${size} bytes comes back as it was`, (store) =>
      Effect.gen(function* () {
        const bytes = noise(size, size)
        const stored = yield* put(store, bytes)
        assert.equal(stored.size, BigInt(size))
        assert.equal(stored.created, true)
        const opened = yield* store.get(stored.id)
        assert.deepEqual(opened.meta, stored.meta)
        const pieces = yield* Stream.runCollect(opened.bytes)
        assert(pieces.every(({ length }) => length > 0 && length <= get_chunk_bytes_max))
        assert(Buffer.concat(pieces).equals(bytes))
        assert(Buffer.from(yield* bytesOf(opened)).equals(bytes), "it can be read once more")
        assert.deepEqual(yield* store.stat(stored.id), stored.meta)
      }),
    )
  }
  promised("how the bytes are cut into parts makes no difference", (store) =>
    Effect.gen(function* () {
      const bytes = noise(7, 700 * kib)
      const expected = blake3(bytes).toString("hex").slice(0, 32)
      for (const cut of [1000, 64 * kib + 3, 300 * kib, 2 * mib]) {
        const { id } = yield* put(store, parts(bytes, cut))
        assert.equal(id, expected)
        assert(Buffer.from(yield* readAll(store, id)).equals(bytes))
        yield* store.delete(id, put.origin)
      }
    }),
  )
  promised("a producer may use its own array again", (store) =>
    Effect.gen(function* () {
      const array = new Uint8Array(100 * kib)
      const reused = Stream.fromIterable([1, 2, 3, 4]).pipe(
        Stream.rechunk(1),
        Stream.map((value) => array.fill(value)),
      )
      const { id } = yield* put(store, reused)
      const expected = Buffer.concat([1, 2, 3, 4].map((value) => Buffer.alloc(100 * kib, value)))
      assert(Buffer.from(yield* readAll(store, id)).equals(expected))
    }),
  )
}

const repetition = (promised: Promised) => {
  promised("the same content again changes nothing", (store) =>
    Effect.gen(function* () {
      for (const size of [10, 400 * kib]) {
        const bytes = noise(1, size)
        const first = yield* put(store, bytes, { labels: { a: "1" } })
        yield* TestClock.adjust("1 second")
        const again = yield* put(store, bytes, { labels: { b: "2" } })
        assert.deepEqual(again, { ...Struct.omit(first, ["cursor"]), created: false })
      }
      assert.equal((yield* store.scan(0, 10)).length, 2)
      assert.equal((yield* store.usage).blob_count, 2)
    }),
  )
  promised("an unspecified policy is stored as REPLICA3 and agrees with any", (store) =>
    Effect.gen(function* () {
      const first = yield* put(store, noise(1, 10))
      assert.equal(first.meta.policy, "REPLICATION_POLICY_REPLICA3")
      const same = yield* put(store, noise(1, 10), { policy: "REPLICATION_POLICY_REPLICA3" })
      assert.equal(same.created, false)
      yield* put(store, noise(2, 10), { policy: "REPLICATION_POLICY_NONE" })
      const { meta, created } = yield* put(store, noise(2, 10))
      assert.equal(created, false)
      assert.equal(meta.policy, "REPLICATION_POLICY_NONE")
    }),
  )
  promised("another explicit policy for the same content is refused", (store) =>
    Effect.gen(function* () {
      for (const size of [10, 400 * kib]) {
        const { meta, id } = yield* put(store, noise(1, size))
        const other = put(store, noise(1, size), { policy: "REPLICATION_POLICY_REPLICA2" })
        assert.equal(yield* tagOf(other), "BlobAlreadyExists")
        assert.deepEqual(yield* store.stat(id), meta)
      }
    }),
  )
  promised("if_none_match refuses what is stored and takes what is not", (store) =>
    Effect.gen(function* () {
      const fresh = yield* put(store, noise(1, 10), { if_none_match: true })
      assert.equal(fresh.created, true)
      const again = put(store, noise(1, 10), { if_none_match: true })
      assert.equal(yield* tagOf(again), "BlobAlreadyExists")
    }),
  )
  promised("an expected ID must be the content's, stored already or not", (store) =>
    Effect.gen(function* () {
      const other = "00000000000000000000000000000000" as BlobId
      for (const size of [10, 400 * kib]) {
        const wrong = put(store, noise(1, size), { expected_id: other })
        assert.equal(yield* tagOf(wrong), "BlobIdMismatch")
      }
      yield* assertEmpty(store)
      const { id } = yield* put(store, noise(1, 10))
      const same = yield* put(store, noise(1, 10), { expected_id: id })
      assert.equal(same.created, false)
      const wrong = put(store, noise(1, 10), { expected_id: other })
      assert.equal(yield* tagOf(wrong), "BlobIdMismatch")
    }),
  )
}

const refusals = (promised: Promised) => {
  for (const size of [10, 900 * kib]) {
    promised(`a stream that fails after ${size} bytes leaves nothing`, (store) =>
      Effect.gen(function* () {
        const torn = Stream.concat(parts(noise(1, size), 100 * kib), Stream.fail("torn" as const))
        assert.equal(yield* Effect.flip(put(store, torn)), "torn")
        yield* assertEmpty(store)
      }),
    )
    promised(`a put interrupted after ${size} bytes was invisible and leaves nothing`, (store) =>
      Effect.gen(function* () {
        const reached = yield* Deferred.make<void>()
        const waits = Stream.fromEffect(
          Effect.andThen(Deferred.succeed(reached, undefined), Effect.never),
        )
        const bytes = noise(1, size)
        const half = Stream.concat(parts(bytes, 100 * kib), waits)
        const fiber = yield* Effect.forkChild(put(store, half))
        yield* Deferred.await(reached)
        yield* assertEmpty(store)
        yield* Fiber.interrupt(fiber)
        yield* assertEmpty(store)
        assert.equal((yield* put(store, bytes)).created, true)
      }),
    )
  }
}

const limits = (promised: Promised) => {
  const small = { capacity_bytes: 10 * mib, size_max_bytes: 500 * kib }
  promised(
    "a blob over the size limit is refused, one at the limit is not",
    (store) =>
      Effect.gen(function* () {
        const over = noise(1, 500 * kib + 1)
        assert.equal(yield* tagOf(put(store, over)), "BlobTooLarge")
        assert.equal(yield* tagOf(put(store, parts(over, 10 * kib))), "BlobTooLarge")
        yield* assertEmpty(store)
        assert.equal((yield* put(store, noise(1, 500 * kib))).size, BigInt(500 * kib))
      }),
    small,
  )
  promised(
    "a small blob over a small limit is refused",
    (store) =>
      Effect.gen(function* () {
        assert.equal(yield* tagOf(put(store, noise(1, 101))), "BlobTooLarge")
        assert.equal((yield* put(store, noise(1, 100))).created, true)
      }),
    { capacity_bytes: 1000, size_max_bytes: 100 },
  )
  promised(
    "a put beyond the capacity is refused whole, and a delete makes room",
    (store) =>
      Effect.gen(function* () {
        const { id } = yield* put(store, noise(1, 600 * kib))
        const before = yield* store.usage
        assert.equal(before.payload_bytes, 600 * kib)
        for (const size of [448 * kib, 3 * mib]) {
          const beyond = put(store, parts(noise(2, size), 50 * kib))
          assert.equal(yield* tagOf(beyond), "BlobCapacityExceeded")
        }
        assert.deepEqual(yield* store.usage, before)
        assert.equal((yield* put(store, noise(3, 424 * kib))).created, true)
        assert.equal(yield* tagOf(put(store, noise(4, 20 * kib))), "BlobCapacityExceeded")
        yield* store.delete(id, put.origin)
        assert.equal((yield* put(store, noise(5, 600 * kib))).created, true)
        assert.equal((yield* store.usage).payload_bytes, mib)
      }),
    // Room for what a store needs besides the bytes themselves.
    { capacity_bytes: mib + 16 * kib },
  )
}

const deletion = (promised: Promised) => {
  promised("what is not there is not found, by get and by stat", (store) =>
    Effect.gen(function* () {
      const id = "0123456789abcdef0123456789abcdef" as BlobId
      assert.equal(yield* tagOf(store.get(id)), "BlobNotFound")
      assert.equal(yield* tagOf(store.stat(id)), "BlobNotFound")
    }),
  )
  promised("a delete answers true each time, and is a fact only where there was a blob", (store) =>
    Effect.gen(function* () {
      const { id, meta } = yield* put(store, noise(1, 10))
      assert.equal(yield* store.tombstone(id), undefined)
      yield* TestClock.adjust("1 second")
      assert.equal(yield* store.delete(id, put.origin), true)
      assert.equal(yield* tagOf(store.get(id)), "BlobNotFound")
      const buried = yield* store.tombstone(id)
      assert(buried !== undefined && buried > meta.created_at)
      assert.equal(yield* store.delete(id, put.origin), true)
      const facts = yield* store.scan(0, 10)
      assert.deepEqual(kinds(facts), [`stored ${id}`, `deleted ${id}`])
      assert.equal(facts[1]?.size, 10)
      const never = "0123456789abcdef0123456789abcdef" as BlobId
      assert.equal(yield* store.delete(never, put.origin), true)
      assert((yield* store.tombstone(never)) !== undefined)
      assert.equal((yield* store.scan(0, 10)).length, 2)
    }),
  )
  promised("a put after a delete stores anew and takes the tombstone away", (store) =>
    Effect.gen(function* () {
      const first = yield* put(store, noise(1, 10), { labels: { old: "1" } })
      yield* store.delete(first.id, put.origin)
      const second = yield* put(store, noise(1, 10), { labels: { new: "2" } })
      assert.equal(second.created, true)
      assert.deepEqual(second.meta.labels, { new: "2" })
      assert(second.meta.created_at > first.meta.created_at)
      assert.equal(yield* store.tombstone(first.id), undefined)
      assert.equal((yield* store.usage).blob_count, 1)
    }),
  )
}

const time = (promised: Promised) => {
  promised("created_at is the given clock's time, and no two puts share one", (store) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_700_000_000_000)
      const first = yield* put(store, noise(1, 10))
      assert.equal(first.meta.created_at, 1_700_000_000_000_000_000n)
      assert.equal(first.meta.modified_at, first.meta.created_at)
      const rest = yield* Effect.all(
        Array.from({ length: 20 }, (_, seed) => put(store, noise(seed + 2, 10))),
        { concurrency: "unbounded" },
      )
      const times = new Set(rest.map(({ meta }) => meta.created_at))
      assert.equal(times.size, 20)
      assert(rest.every(({ meta }) => meta.created_at > first.meta.created_at))
    }),
  )
}

const ranges = (promised: Promised) => {
  promised("a range is the same stretch of the whole, across every border", (store) =>
    Effect.gen(function* () {
      const bytes = noise(1, 2 * mib + 12345)
      const { id } = yield* put(store, bytes)
      const borders = [0, 1, 64 * kib, get_chunk_bytes_max, 2 * mib, bytes.length]
      const near = fc
        .tuple(fc.constantFrom(...borders), fc.integer({ min: -2, max: 2 }))
        .map(([border, by]) => Math.max(0, border + by))
      const place = fc.oneof(near, fc.nat(bytes.length + 10))
      const isStretch = async (offset: number, length: number | undefined) => {
        const range = { offset, ...(length === undefined ? {} : { length }) }
        const read = await Effect.runPromise(readAll(store, id, range))
        const end = length === undefined ? bytes.length : offset + length
        assert(Buffer.from(read).equals(bytes.subarray(offset, end)))
      }
      const property = fc.asyncProperty(place, fc.option(place, { nil: undefined }), isStretch)
      yield* Effect.promise(() => fc.assert(property, { numRuns: 60 }))
    }),
  )
}

const lists = (promised: Promised) => {
  promised("a list pages through the IDs in byte order, as a naive list does", (store) =>
    Effect.gen(function* () {
      const stored = yield* Effect.all(
        Array.from({ length: 150 }, (_, seed) => put(store, noise(seed, 20))),
        { concurrency: 16 },
      )
      const ids = stored.map(({ id }) => id).sort()
      const prefix = fc
        .tuple(fc.constantFrom(...ids), fc.integer({ min: 0, max: 3 }))
        .map(([id, length]) => id.slice(0, length))
      const agrees = async (limit: number, begins: string) => {
        const expected = ids.filter((id) => id.startsWith(begins))
        const found: Array<BlobId> = []
        for (let more = true; more; ) {
          const last = found.at(-1)
          const page = await Effect.runPromise(
            store.list({ limit, prefix: begins, ...(last ? { after_id: last } : {}) }),
          )
          assert(page.ids.length <= limit)
          found.push(...page.ids)
          assert.equal(page.has_more, found.length < expected.length)
          more = page.has_more
        }
        assert.deepEqual(found, expected)
      }
      const property = fc.asyncProperty(fc.integer({ min: 1, max: 200 }), prefix, agrees)
      yield* Effect.promise(() => fc.assert(property, { numRuns: 40 }))
      const after_id = "80000000000000000000000000000000" as BlobId
      const rest = yield* store.list({ after_id, limit: 200 })
      assert.deepEqual(
        rest.ids,
        ids.filter((id) => id > after_id),
      )
    }),
  )
}

/** Declares the contract's tests over the stores that `layerOf` makes, each empty at first. */
export const blobStoreContract = (
  name: string,
  layerOf: LayerOf,
  more: ReadonlyArray<(promised: Promised) => void> = [],
) => {
  const promised: Promised = (sentence, body, given = roomy) =>
    it.effect(sentence, () => Effect.flatMap(BlobStore, body).pipe(Effect.provide(layerOf(given))))
  describe(name, () => {
    const parts_of_contract = [
      identity,
      repetition,
      refusals,
      limits,
      deletion,
      time,
      ranges,
      lists,
    ]
    for (const part of [...parts_of_contract, ...more]) part(promised)
  })
}
export type { Promised, Store }
