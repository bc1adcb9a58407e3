/**
 * Handles the old versions of deleted objects: purges unneeded ones and restores needed ones. A
 * delete only adds a marker; removing the marker undoes it.
 */
import { DeleteObjectCommand } from "@aws-sdk/client-s3"
import { Effect, Stream } from "effect"
import { type OpenBucket, request, requests_max } from "#adapters/share-protection/s3/client.ts"
import type { S3Failure } from "#adapters/share-protection/s3/failure.ts"
import { keysBelow, type Version, type Versions } from "#adapters/share-protection/s3/listing.ts"
import { earliest, lockOf } from "#adapters/share-protection/s3/locks.ts"

/** Prefix of preflight objects, which no repository uses. */
export const canary_prefix = "almanac/canary/"

/**
 * Age in milliseconds at which a canary counts as abandoned: a preflight takes at most a minute.
 */
const canary_ms = 3_600_000

/**
 * Removes old versions of the engine's locks and of canaries, and then the delete markers of keys
 * without remaining versions: removing a marker first would revive a lock. Locked versions stay.
 * Returns the number of removed versions and markers; `now` is in epoch milliseconds.
 */
export const purgeVersions = (s3: OpenBucket, now: number) => {
  const isAbandoned = ({ key, modified }: Version) =>
    key.startsWith(canary_prefix) && modified < now - canary_ms
  const purgeKey = Effect.fnUntraced(function* ({ versions, markers }: Versions) {
    const old = versions.filter((version) => !version.is_latest || isAbandoned(version))
    const removed = yield* Effect.forEach(old, (version) => tryRemove(s3, version))
    const count = removed.filter(Boolean).length
    if (count < versions.length) return count
    const removed_markers = yield* Effect.forEach(markers, (marker) => tryRemove(s3, marker))
    return count + removed_markers.filter(Boolean).length
  })
  return Stream.concat(keysBelow(s3, "locks/"), keysBelow(s3, canary_prefix)).pipe(
    Stream.mapEffect(purgeKey, { concurrency: requests_max }),
    Stream.runFold(
      () => 0,
      (sum, count) => sum + count,
    ),
  )
}

/**
 * Epoch milliseconds until which a forgotten snapshot can certainly be restored; null if it cannot.
 */
export const recoverable = Effect.fnUntraced(function* (s3: OpenBucket, id: string, now: number) {
  if (!(yield* hasVersions(s3, id))) return null
  const end = yield* earliest(
    Stream.mapEffect(deletedFor(s3, id), (deleted) => lockEnd(s3, deleted), {
      concurrency: requests_max,
    }),
  )
  return end !== null && end > now ? end : null
})

/**
 * Restores the snapshot object last, so that after an interruption it never appears without its
 * data.
 */
export const undelete = Effect.fnUntraced(function* (s3: OpenBucket, id: string) {
  if (!(yield* hasVersions(s3, id))) return false
  const deleted = yield* Stream.runCollect(deletedFor(s3, id))
  // The snapshot may need any of these, so all must be restorable.
  if (deleted.some(({ versions }) => versions.length === 0)) return false
  const isSnapshot = ({ key }: Versions) => key === snapshotKey(id)
  for (const keys of [deleted.filter((one) => !isSnapshot(one)), deleted.filter(isSnapshot)]) {
    yield* Effect.forEach(
      keys.flatMap(({ markers }) => markers),
      (marker) => remove(s3, marker),
      { concurrency: requests_max, discard: true },
    )
  }
  return true
})

const snapshotKey = (id: string) => `snapshots/${id}`

/** Whether any version of the snapshot remains. */
const hasVersions = (s3: OpenBucket, id: string) =>
  keysBelow(s3, snapshotKey(id)).pipe(
    Stream.filter(({ key, versions }) => key === snapshotKey(id) && versions.length > 0),
    Stream.runHead,
    Effect.map(({ _tag }) => _tag === "Some"),
  )

/**
 * Deleted objects that the snapshot may need. Excludes the engine's keys: a revoked key must not
 * open the repository again.
 */
const deletedFor = (s3: OpenBucket, id: string) =>
  Stream.concat(
    Stream.concat(keysBelow(s3, "data/"), keysBelow(s3, "index/")),
    Stream.filter(keysBelow(s3, snapshotKey(id)), ({ key }) => key === snapshotKey(id)),
  ).pipe(Stream.filter(({ is_live }) => !is_live))

/** When the lock of the newest version ends, which is the one that would be restored. */
const lockEnd = (s3: OpenBucket, { key, versions: [newest] }: Versions) =>
  newest === undefined
    ? Effect.succeed(null)
    : Effect.map(lockOf(s3, key, newest.version_id), ({ until }) => until)

/** Removes a version permanently; fails with `denied` if it is locked. */
export const remove = (s3: OpenBucket, { key, version_id }: Pick<Version, "key" | "version_id">) =>
  request(s3, (client, options) =>
    client.send(
      new DeleteObjectCommand({ Bucket: s3.name, Key: key, VersionId: version_id }),
      options,
    ),
  )

const tryRemove = (s3: OpenBucket, version: Version) =>
  remove(s3, version).pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ kind }: S3Failure) => kind === "denied",
      () => Effect.succeed(false),
    ),
  )
