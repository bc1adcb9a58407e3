/**
 * Buckets of a real S3 service.
 *
 * Source: document 2 §2 Target, §4 rule 6; decision 0061.
 */

import { ListObjectsV2Command } from "@aws-sdk/client-s3"
import { Clock, DateTime, Effect, Layer, Stream } from "effect"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import {
  type OpenBucket,
  request,
  type S3Bounds,
  s3_bounds,
  withBucket,
} from "#adapters/share-protection/s3/client.ts"
import { asRejection, type S3Failure } from "#adapters/share-protection/s3/failure.ts"
import { versionsBelow } from "#adapters/share-protection/s3/listing.ts"
import { defaultLock, extend, lockedUntil } from "#adapters/share-protection/s3/locks.ts"
import { preflight } from "#adapters/share-protection/s3/preflight.ts"
import { purgeVersions, recoverable, undelete } from "#adapters/share-protection/s3/versions.ts"

/** The port over S3 with these timeouts and this rule for endpoints. */
export const bucketsS3In = (bounds: S3Bounds) => {
  const withS3 = <A>(bucket: Bucket, use: (s3: OpenBucket) => Effect.Effect<A, S3Failure>) =>
    Effect.mapError(withBucket(bucket, bounds, use), asRejection)
  return Layer.succeed(Buckets, {
    preflight: (bucket, { shape }) => preflight(bucket, shape, bounds),
    reach: (bucket) => withS3(bucket, listOne),
    usage: (bucket) => withS3(bucket, usage),
    protectedUntil: (bucket) => withS3(bucket, (s3) => Effect.map(lockedUntil(s3), iso)),
    extendLocks: (bucket, until) =>
      withS3(bucket, (s3) => extend(s3, DateTime.toEpochMillis(DateTime.makeUnsafe(until)))),
    retention: (bucket) =>
      withS3(bucket, (s3) => Effect.map(defaultLock(s3), (lock) => lock?.seconds ?? null)),
    purge: (bucket) => withS3(bucket, (s3) => withTime((now) => purgeVersions(s3, now))),
    recoverableUntil: (bucket, id) =>
      withS3(bucket, (s3) =>
        Effect.map(
          withTime((now) => recoverable(s3, id, now)),
          iso,
        ),
      ),
    undelete: (bucket, id) => withS3(bucket, (s3) => undelete(s3, id)),
  })
}

export const bucketsS3 = bucketsS3In(s3_bounds)

/** With the default timeouts, restricted to allowed addresses. */
export const bucketsS3Within = (rule: Pick<S3Bounds, "isAllowed">) =>
  bucketsS3In({ ...s3_bounds, ...rule })

const withTime = <A, E>(run: (now: number) => Effect.Effect<A, E>) =>
  Effect.flatMap(Clock.currentTimeMillis, run)

const iso = (time: number | null) =>
  time === null ? null : DateTime.formatIso(DateTime.makeUnsafe(time))

/** Lists one object: the engine needs that permission too, and a refusal includes the reason. */
const listOne = (s3: OpenBucket) =>
  Effect.asVoid(
    request(s3, (client, options) =>
      client.send(new ListObjectsV2Command({ Bucket: s3.name, MaxKeys: 1 }), options),
    ),
  )

const usage = Effect.fnUntraced(function* (s3: OpenBucket) {
  const counted = yield* Stream.runFold(
    versionsBelow(s3, ""),
    () => ({ stored_bytes: 0, noncurrent_bytes: 0, objects: 0 }),
    (sum, { bytes, is_latest, is_marker }) => ({
      stored_bytes: sum.stored_bytes + bytes,
      noncurrent_bytes: sum.noncurrent_bytes + (is_latest ? 0 : bytes),
      objects: sum.objects + (is_latest && !is_marker ? 1 : 0),
    }),
  )
  return { ...counted, measured_at: DateTime.formatIso(yield* DateTime.now) }
})
