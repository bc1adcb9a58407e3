/** Contract of every Buckets adapter. */
import { assert } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import {
  BackendUnavailable,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import type { PreflightCheck } from "#schemas/share-protection/target.ts"
import { bucketsKeepingContract } from "./buckets-keeping.ts"

/** A possible fault of a bucket, named after the check that detects it. */
export type Flaw = PreflightCheck

type Made<A> = Effect.Effect<A, unknown, Buckets | Scope.Scope>

/** Creates buckets for a test. */
export interface BucketsPlace {
  /** A valid, unused bucket without default object locks. */
  readonly bucket: Made<Bucket>
  /** The same, but with a default object lock of this many days. */
  readonly locking: (days: number) => Made<Bucket>
  readonly flawed: (flaw: Flaw) => Made<Bucket>
  /** Writes an object of this size, with a lock until a time (RFC 3339) if one is given. */
  readonly put: (bucket: Bucket, key: string, bytes: number, locked_until?: string) => Made<unknown>
  /** Deletes an object; its version remains. */
  readonly remove: (bucket: Bucket, key: string) => Made<unknown>
}

type Test = (name: string, body: (place: BucketsPlace) => Made<void>) => void

const checks: ReadonlyArray<Flaw> = [
  "reachability",
  "read_write",
  "addressing_style",
  "versioning",
  "object_lock",
  "lifecycle",
]

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const later = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

/** A time with the precision that S3 keeps for the end of a lock. */
const second = (time: string | null) => time?.slice(0, 19)

/** Runs the suite; `lacks` lists faults that the adapter cannot produce. */
export const bucketsContract = (test: Test, lacks: ReadonlyArray<Flaw> = []) => {
  test("finds a bucket good that is", (place) =>
    Effect.gen(function* () {
      const { preflight, reach } = yield* Buckets
      const bucket = yield* place.bucket
      for (const shape of ["A", "B"] as const) {
        const { checked_at, ...found } = yield* preflight(bucket, { shape })
        const { addressing_mode } = bucket
        const good = { object_lock: true, versioning: true, lifecycle: true, addressing_mode }
        assert.deepEqual(found, good)
        assert.match(checked_at, instant)
      }
      yield* reach(bucket)
    }))

  for (const flaw of checks.filter((check) => !lacks.includes(check))) {
    test(`names ${flaw} when that check fails`, (place) =>
      Effect.gen(function* () {
        const { preflight } = yield* Buckets
        const bucket = yield* place.flawed(flaw)
        const failure: unknown = yield* Effect.flip(preflight(bucket, { shape: "B" }))
        assert(failure instanceof TargetPreflightFailed)
        assert.isTrue(failure.detail.startsWith(`${flaw}: `), failure.detail)
        assert.notInclude(JSON.stringify(failure), Redacted.value(bucket.secret_key))
      }))
  }

  test("distinguishes wrong keys from a service that does not respond", (place) =>
    Effect.gen(function* () {
      const buckets = yield* Buckets
      const wrong = { ...(yield* place.bucket), secret_key: Redacted.make("wrong-secret") }
      const away = yield* place.flawed("reachability")
      const failures = (bucket: Bucket) =>
        Effect.forEach(
          [
            Effect.flip(buckets.reach(bucket)),
            Effect.flip(buckets.usage(bucket)),
            Effect.flip(buckets.protectedUntil(bucket)),
            Effect.flip(buckets.extendLocks(bucket, later(1))),
          ],
          (failure): Effect.Effect<unknown, unknown> => failure,
        )
      for (const failure of yield* failures(wrong)) {
        assert.instanceOf(failure, TrustAccessDenied)
        assert.notInclude(JSON.stringify(failure), "wrong-secret")
      }
      for (const failure of yield* failures(away)) assert.instanceOf(failure, BackendUnavailable)
    }))

  test("counts what is stored, and what is not the newest apart", (place) =>
    Effect.gen(function* () {
      const { usage } = yield* Buckets
      const bucket = yield* place.bucket
      const empty = yield* usage(bucket)
      assert.deepInclude(empty, { stored_bytes: 0, noncurrent_bytes: 0, objects: 0 })
      assert.match(empty.measured_at, instant)
      yield* place.put(bucket, "data/a", 1000)
      yield* place.put(bucket, "data/b", 200)
      yield* place.put(bucket, "data/b", 30)
      const used = { stored_bytes: 1230, noncurrent_bytes: 200, objects: 2 }
      assert.deepInclude(yield* usage(bucket), used)
      yield* place.remove(bucket, "data/a")
      const left = { stored_bytes: 1230, noncurrent_bytes: 1200, objects: 1 }
      assert.deepInclude(yield* usage(bucket), left)
    }))

  test("is protected until the first of all locks ends", (place) =>
    Effect.gen(function* () {
      const { protectedUntil } = yield* Buckets
      const bucket = yield* place.bucket
      assert.isNull(yield* protectedUntil(bucket))
      yield* place.put(bucket, "data/a", 10, later(3))
      const first = later(2)
      yield* place.put(bucket, "data/b", 10, first)
      yield* place.put(bucket, "locks/c", 10)
      const until = yield* protectedUntil(bucket)
      assert.equal(second(until), second(first))
      assert.match(String(until), instant)
      yield* place.put(bucket, "data/d", 10)
      assert.isNull(yield* protectedUntil(bucket))
    }))

  test("makes locks longer, and none shorter", (place) =>
    Effect.gen(function* () {
      const { protectedUntil, extendLocks } = yield* Buckets
      const bucket = yield* place.bucket
      const long = later(9)
      yield* place.put(bucket, "data/a", 10, later(1))
      yield* place.put(bucket, "data/b", 10, long)
      yield* place.put(bucket, "data/c", 10)
      yield* place.put(bucket, "locks/d", 10)
      const until = later(5)
      yield* extendLocks(bucket, until)
      assert.equal(second(yield* protectedUntil(bucket)), second(until))
      yield* extendLocks(bucket, later(2))
      assert.equal(second(yield* protectedUntil(bucket)), second(until))
      yield* place.remove(bucket, "data/a")
      yield* place.remove(bucket, "data/c")
      assert.equal(second(yield* protectedUntil(bucket)), second(long))
    }))

  bucketsKeepingContract(test)
}
