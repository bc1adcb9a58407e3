import {
  DeleteObjectCommand,
  HeadObjectCommand,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
  PutObjectRetentionCommand,
  type S3Client,
} from "@aws-sdk/client-s3"
import { assert, it } from "@effect/vitest"
import { Effect, type Scope, Stream } from "effect"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import { bucketsS3 } from "#adapters/share-protection/s3/buckets.ts"
import { s3_bounds, withBucket } from "#adapters/share-protection/s3/client.ts"
import { versionsBelow } from "#adapters/share-protection/s3/listing.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import {
  type BucketsPlace,
  bucketsContract,
  type Flaw,
} from "../../../contract/share-protection/buckets.ts"
import { describeWithRadosgw, S3, s3Client, testRadosgw } from "../../../world/programs/radosgw.ts"

/** Runs requests against the server with the test's own client. */
const by = <A>({ endpoint, access_key, secret_key }: Bucket, ask: (s3: S3Client) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => s3Client({ endpoint, access_key, secret_key })),
    (client) => Effect.promise(() => ask(client)),
    (client) => Effect.sync(() => client.destroy()),
  )

const expireAll = ({ bucket }: Bucket) =>
  new PutBucketLifecycleConfigurationCommand({
    Bucket: bucket,
    LifecycleConfiguration: {
      Rules: [{ ID: "all", Status: "Enabled", Filter: { Prefix: "" }, Expiration: { Days: 30 } }],
    },
  })

const placeOf = (s3: S3["Service"]): BucketsPlace => {
  const flawed: Readonly<Record<Flaw, Effect.Effect<Bucket, unknown, Scope.Scope>>> = {
    reachability: Effect.map(s3.bucket(), (bucket) => ({
      ...bucket,
      endpoint: "http://127.0.0.1:1",
    })),
    read_write: Effect.map(s3.bucket(), (bucket) => ({ ...bucket, bucket: "nobodys-bucket" })),
    addressing_style: Effect.map(s3.bucket(), (bucket) => ({
      ...bucket,
      addressing_mode: "virtual",
    })),
    versioning: s3.bucket({ lock: false }),
    object_lock: s3.bucket({ lock: false, versioning: true }),
    lifecycle: Effect.tap(s3.bucket(), (bucket) =>
      by(bucket, (client) => client.send(expireAll(bucket))),
    ),
  }
  return {
    bucket: s3.bucket(),
    locking: (days) => s3.bucket({ retention_days: days }),
    flawed: (flaw) => flawed[flaw],
    put: (bucket, key, bytes, locked_until) =>
      by(bucket, async (client) => {
        const at = { Bucket: bucket.bucket, Key: key }
        const { VersionId } = await client.send(
          new PutObjectCommand({ ...at, Body: new Uint8Array(bytes) }),
        )
        if (locked_until === undefined) return
        const Retention = { Mode: "COMPLIANCE", RetainUntilDate: new Date(locked_until) } as const
        await client.send(new PutObjectRetentionCommand({ ...at, VersionId, Retention }))
      }),
    remove: (bucket, key) =>
      by(bucket, (client) =>
        client.send(new DeleteObjectCommand({ Bucket: bucket.bucket, Key: key })),
      ),
  }
}

describeWithRadosgw("buckets of radosgw", () => {
  it.layer(S3.layer, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    bucketsContract((name, body) =>
      it.effect(name, () =>
        Effect.flatMap(S3, (s3) => Effect.provide(Effect.scoped(body(placeOf(s3))), bucketsS3)),
      ),
    )

    it.effect("counts and brings back more than a page holds", () =>
      Effect.gen(function* () {
        const many = yield* (yield* S3).bucket()
        const { usage, undelete, protectedUntil, purge } = yield* Buckets
        const keys = [...Array.from({ length: 1_100 }, (_, n) => `data/${n}`), "snapshots/s"]
        const each = (send: (s3: S3Client, Key: string) => Promise<unknown>) =>
          by(many, async (client) => {
            for (let at = 0; at < keys.length; at += 50) {
              await Promise.all(keys.slice(at, at + 50).map((key) => send(client, key)))
            }
          })
        const Bucket = many.bucket
        yield* each((s3, Key) => s3.send(new PutObjectCommand({ Bucket, Key, Body: "x" })))
        assert.deepInclude(yield* usage(many), { objects: 1_101, stored_bytes: 1_101 })
        yield* each((s3, Key) => s3.send(new DeleteObjectCommand({ Bucket, Key })))
        assert.deepInclude(yield* usage(many), { objects: 0, noncurrent_bytes: 1_101 })
        assert.isTrue(yield* undelete(many, "s"))
        assert.deepInclude(yield* usage(many), { objects: 1_101, noncurrent_bytes: 0 })
        assert.isNull(yield* protectedUntil(many))
        assert.equal(yield* purge(many), 0)
      }).pipe(Effect.scoped, Effect.provide(bucketsS3)),
    )

    it.effect("leaves canaries only where they are locked, and purges the rest", () =>
      Effect.gen(function* () {
        const { preflight, usage, purge, protectedUntil } = yield* Buckets
        const bucket = yield* (yield* S3).bucket()
        yield* preflight(bucket, { shape: "B" })
        assert.equal((yield* usage(bucket)).objects, 0)
        // The version that is locked for a minute, and a delete marker for each object.
        const left = (yield* versionsOf(bucket)).map(({ is_marker }) => is_marker)
        assert.sameMembers(left, [false, true, true])
        assert.equal(yield* purge(bucket), 1)
        assert.lengthOf(yield* versionsOf(bucket), 2)
        assert.isNull(yield* protectedUntil(bucket))
      }).pipe(Effect.scoped, Effect.provide(bucketsS3)),
    )

    it.effect("finds a bucket good that locks by itself, and proves the lock in its mode", () =>
      Effect.gen(function* () {
        const { preflight } = yield* Buckets
        const bucket = yield* (yield* S3).bucket({ retention_days: 1 })
        assert.isTrue((yield* preflight(bucket, { shape: "B" })).object_lock)
      }).pipe(Effect.scoped, Effect.provide(bucketsS3)),
    )

    it.effect("locks for longer in the mode that an object has, and else in the bucket's", () =>
      Effect.gen(function* () {
        const { extendLocks } = yield* Buckets
        const server = yield* S3
        const { put } = placeOf(server)
        for (const retention_days of [1, undefined]) {
          const bucket = yield* server.bucket(retention_days ? { retention_days } : {})
          yield* put(bucket, "data/a", 1)
          yield* extendLocks(bucket, new Date(Date.now() + 5 * 86_400_000).toISOString())
          const { ObjectLockMode } = yield* by(bucket, (client) =>
            client.send(new HeadObjectCommand({ Bucket: bucket.bucket, Key: "data/a" })),
          )
          assert.equal(ObjectLockMode, retention_days ? "COMPLIANCE" : "GOVERNANCE")
        }
      }).pipe(Effect.scoped, Effect.provide(bucketsS3)),
    )
  })

  it.live("takes a gateway that is away for what it is, and for nothing when it is back", () =>
    Effect.gen(function* () {
      const server = yield* testRadosgw
      const bucket = yield* server.bucket()
      const { reach, preflight } = yield* Buckets
      yield* reach(bucket)
      yield* server.stop
      assert.instanceOf(yield* Effect.flip(reach(bucket)), BackendUnavailable)
      const { detail } = yield* Effect.flip(preflight(bucket, { shape: "B" }))
      assert.isTrue(detail.startsWith("reachability: "), detail)
      yield* server.start
      yield* reach(bucket)
    }).pipe(Effect.scoped, Effect.provide(bucketsS3)),
  )
})

const versionsOf = (bucket: Bucket) =>
  withBucket(bucket, s3_bounds, (s3) => Stream.runCollect(versionsBelow(s3, "")))
