import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import {
  type BucketsPlace,
  bucketsContract,
  type Flaw,
} from "../../contract/share-protection/buckets.ts"
import {
  bucketsMemory,
  type MemoryBucket,
  makeBucket,
  openBucket,
  putObject,
  removeObject,
  type S3,
} from "../../world/share-protection/memory/buckets.ts"

const flaws: Readonly<Record<Flaw, Partial<MemoryBucket>>> = {
  reachability: { is_reachable: false },
  read_write: { is_writable: false },
  addressing_style: { addressing_modes: ["virtual"] },
  versioning: { has_versioning: false, has_object_lock: false },
  object_lock: { has_object_lock: false },
  lifecycle: { has_expiration: true },
}

const placeOf = (s3: S3): BucketsPlace => ({
  bucket: Effect.sync(() => makeBucket(s3)),
  locking: (days) => Effect.sync(() => makeBucket(s3, { lock_ms: days * 86_400_000 })),
  flawed: (flaw) => Effect.sync(() => makeBucket(s3, flaws[flaw])),
  put: Effect.fnUntraced(function* (bucket: Bucket, key, bytes, locked_until) {
    const memory = yield* openBucket(s3, bucket)
    yield* putObject(memory, key, new Uint8Array(bytes))
    const object = memory.objects.get(key)
    if (object && locked_until !== undefined) object.locked_until = Date.parse(locked_until)
  }),
  remove: (bucket, key) =>
    Effect.map(openBucket(s3, bucket), (memory) => removeObject(memory, key)),
})

describe("buckets in memory", () => {
  bucketsContract((name, body) =>
    it.live(name, () => {
      const s3: S3 = new Map()
      return Effect.scoped(body(placeOf(s3))).pipe(Effect.provide(bucketsMemory(s3)))
    }),
  )

  it.live("lock what is written for as long as they say", () =>
    Effect.gen(function* () {
      const s3: S3 = new Map()
      const memory = yield* openBucket(s3, makeBucket(s3, { lock_ms: 60_000 }))
      const before = yield* Clock.currentTimeMillis
      yield* putObject(memory, "data/a", new Uint8Array(1))
      assert.isAtLeast(memory.objects.get("data/a")?.locked_until ?? 0, before + 60_000)
    }),
  )
})
