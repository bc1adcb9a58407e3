/** Contract of every Buckets adapter for deleted objects, and for a bucket's default locks. */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import type { BucketsPlace } from "./buckets.ts"

type Made<A> = Effect.Effect<A, unknown, Buckets | Scope.Scope>

type Test = (name: string, body: (place: BucketsPlace) => Made<void>) => void

const later = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

/** A time with the precision that S3 keeps for the end of a lock. */
const second = (time: string | null) => time?.slice(0, 19)

const snapshot = "a".repeat(64)
const other = `${snapshot.slice(0, -1)}b`

/**
 * A small repository whose snapshot was forgotten and pruned; each object is locked until `until`.
 */
const forgotten = Effect.fnUntraced(function* (place: BucketsPlace, until?: string) {
  const bucket = yield* place.bucket
  const gone = ["data/aa/one", "index/one", `snapshots/${snapshot}`]
  for (const key of [...gone, "data/bb/two", "index/two", "keys/one"]) {
    yield* place.put(bucket, key, 10, until)
  }
  for (const key of gone) yield* place.remove(bucket, key)
  return bucket
})

export const bucketsKeepingContract = (test: Test) => {
  test("reports how long the bucket locks new objects, and that it does not", (place) =>
    Effect.gen(function* () {
      const { retention } = yield* Buckets
      assert.isNull(yield* retention(yield* place.bucket))
      assert.equal(yield* retention(yield* place.locking(2)), 2 * 86_400)
    }))

  test("locks what is put into a bucket that locks", (place) =>
    Effect.gen(function* () {
      const { protectedUntil } = yield* Buckets
      const bucket = yield* place.locking(1)
      yield* place.put(bucket, "data/a", 10)
      const until = Date.parse(String(yield* protectedUntil(bucket)))
      assert.closeTo(until, Date.parse(later(1)), 60_000)
    }))

  test("purges what the engine's locks left behind, and nothing else", (place) =>
    Effect.gen(function* () {
      const { purge, usage } = yield* Buckets
      const bucket = yield* place.bucket
      assert.equal(yield* purge(bucket), 0)
      for (const key of ["locks/a", "locks/b", "locks/live", "data/a", "data/b"]) {
        yield* place.put(bucket, key, 10)
      }
      for (const key of ["locks/a", "locks/b", "data/a"]) yield* place.remove(bucket, key)
      assert.equal(yield* purge(bucket), 4)
      const left = { stored_bytes: 30, noncurrent_bytes: 10, objects: 2 }
      assert.deepInclude(yield* usage(bucket), left)
      assert.equal(yield* purge(bucket), 0)
    }))

  test("purges no lock that is still protected, nor the mark that it was deleted", (place) =>
    Effect.gen(function* () {
      const { purge, usage } = yield* Buckets
      const bucket = yield* place.bucket
      yield* place.put(bucket, "locks/a", 10, later(1))
      yield* place.remove(bucket, "locks/a")
      assert.equal(yield* purge(bucket), 0)
      const left = { stored_bytes: 10, noncurrent_bytes: 10, objects: 0 }
      assert.deepInclude(yield* usage(bucket), left)
    }))

  test("brings a forgotten snapshot back, once and again", (place) =>
    Effect.gen(function* () {
      const { undelete, usage } = yield* Buckets
      const bucket = yield* forgotten(place)
      assert.deepInclude(yield* usage(bucket), { objects: 3, noncurrent_bytes: 30 })
      assert.isTrue(yield* undelete(bucket, snapshot))
      assert.deepInclude(yield* usage(bucket), { objects: 6, noncurrent_bytes: 0 })
      assert.isTrue(yield* undelete(bucket, snapshot))
      assert.deepInclude(yield* usage(bucket), { objects: 6, noncurrent_bytes: 0 })
    }))

  test("brings back what was deleted more than once", (place) =>
    Effect.gen(function* () {
      const { undelete, usage } = yield* Buckets
      const bucket = yield* forgotten(place)
      assert.isTrue(yield* undelete(bucket, snapshot))
      yield* place.put(bucket, "data/aa/one", 10)
      for (const key of ["data/aa/one", `snapshots/${snapshot}`]) yield* place.remove(bucket, key)
      assert.isTrue(yield* undelete(bucket, snapshot))
      assert.deepInclude(yield* usage(bucket), { objects: 6, noncurrent_bytes: 10 })
    }))

  test("leaves other snapshots, keys and locks as they are", (place) =>
    Effect.gen(function* () {
      const { undelete, usage } = yield* Buckets
      const bucket = yield* forgotten(place)
      for (const key of [`snapshots/${other}`, "keys/two", "locks/one"]) {
        yield* place.put(bucket, key, 100)
        yield* place.remove(bucket, key)
      }
      assert.isTrue(yield* undelete(bucket, snapshot))
      assert.deepInclude(yield* usage(bucket), { objects: 6, noncurrent_bytes: 300 })
    }))

  test("does not bring back a snapshot that never was, and touches nothing", (place) =>
    Effect.gen(function* () {
      const { undelete, recoverableUntil, usage } = yield* Buckets
      const bucket = yield* forgotten(place, later(1))
      // These ids share a prefix with an existing snapshot.
      for (const id of [other, snapshot.slice(0, 8)]) {
        assert.isNull(yield* recoverableUntil(bucket, id))
        assert.isFalse(yield* undelete(bucket, id))
      }
      assert.deepInclude(yield* usage(bucket), { objects: 3, noncurrent_bytes: 30 })
    }))

  test("can recover until the first lock ends of what was deleted", (place) =>
    Effect.gen(function* () {
      const { recoverableUntil } = yield* Buckets
      const until = later(3)
      const bucket = yield* forgotten(place, until)
      assert.equal(second(yield* recoverableUntil(bucket, snapshot)), second(until))
      const first = later(1)
      yield* place.put(bucket, "data/cc/three", 10, first)
      assert.equal(second(yield* recoverableUntil(bucket, snapshot)), second(until))
      yield* place.remove(bucket, "data/cc/three")
      assert.equal(second(yield* recoverableUntil(bucket, snapshot)), second(first))
      yield* place.put(bucket, "data/dd/four", 10)
      yield* place.remove(bucket, "data/dd/four")
      assert.isNull(yield* recoverableUntil(bucket, snapshot))
    }))

  test("promises no recovery of what nothing locks", (place) =>
    Effect.gen(function* () {
      const { recoverableUntil } = yield* Buckets
      assert.isNull(yield* recoverableUntil(yield* forgotten(place), snapshot))
    }))

  test("distinguishes wrong keys from silence for every request about deleted objects", (place) =>
    Effect.gen(function* () {
      const buckets = yield* Buckets
      const good = yield* place.bucket
      const wrong: Bucket = { ...good, access_key: good.secret_key }
      const away = yield* place.flawed("reachability")
      for (const failure of yield* failures(buckets, wrong)) {
        assert.instanceOf(failure, TrustAccessDenied)
      }
      for (const failure of yield* failures(buckets, away)) {
        assert.instanceOf(failure, BackendUnavailable)
      }
    }))
}

const failures = (buckets: Buckets["Service"], bucket: Bucket) =>
  Effect.all([
    Effect.flip(buckets.retention(bucket)),
    Effect.flip(buckets.purge(bucket)),
    Effect.flip(buckets.recoverableUntil(bucket, snapshot)),
    Effect.flip(buckets.undelete(bucket, snapshot)),
  ])
