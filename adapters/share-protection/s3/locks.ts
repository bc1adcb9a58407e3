/**
 * Object locks of a repository: reads and extends them.
 *
 * Listings do not include locks, so each object needs a request: 100,000 objects take minutes.
 */
import {
  GetObjectLockConfigurationCommand,
  HeadObjectCommand,
  type ObjectLockRetentionMode,
  PutObjectRetentionCommand,
} from "@aws-sdk/client-s3"
import { Effect, Stream } from "effect"
import { type OpenBucket, request, requests_max } from "#adapters/share-protection/s3/client.ts"
import type { S3Failure } from "#adapters/share-protection/s3/failure.ts"
import { liveKeys } from "#adapters/share-protection/s3/listing.ts"

/** A repository's objects are at the bucket's root; the engine's own locks are temporary. */
const is_needed = /^(config$|(data|index|keys|snapshots)\/)/

const day_s = 86_400
/** S3's definition of a year. */
const year_days = 365

/** A bucket's default retention: its mode and duration. */
export interface DefaultLock {
  readonly mode: ObjectLockRetentionMode
  readonly seconds: number
}

/** Undefined if the bucket has no object lock; null if it has no default retention. */
export const defaultLock = (s3: OpenBucket) =>
  request(s3, (client, options) =>
    client.send(new GetObjectLockConfigurationCommand({ Bucket: s3.name }), options),
  ).pipe(
    Effect.map(({ ObjectLockConfiguration: found }): DefaultLock | null | undefined => {
      if (found?.ObjectLockEnabled !== "Enabled") return undefined
      const { Mode, Days = 0, Years = 0 } = found.Rule?.DefaultRetention ?? {}
      const seconds = (Days + Years * year_days) * day_s
      return Mode === undefined || seconds === 0 ? null : { mode: Mode, seconds }
    }),
    Effect.catchIf(isUnconfigured, () => Effect.undefined),
  )

const isUnconfigured = ({ code }: S3Failure) => code === "ObjectLockConfigurationNotFoundError"

/** Epoch milliseconds until which all objects of a repository are locked; null if any is not. */
export const lockedUntil = (s3: OpenBucket) =>
  liveKeys(s3).pipe(
    Stream.filter((key) => is_needed.test(key)),
    Stream.mapEffect((key) => ifExists(lockOf(s3, key)), { concurrency: requests_max }),
    Stream.filter((lock) => lock !== undefined),
    Stream.map(({ until }) => until),
    earliest,
  )

/** The minimum; null if there is none or if any value is null, which ends the search early. */
export const earliest = <E, R>(ends: Stream.Stream<number | null, E, R>) =>
  ends.pipe(
    Stream.takeUntil((end) => end === null),
    Stream.runFold(
      (): number | null | undefined => undefined,
      (first, end) => (end === null || first === null ? null : Math.min(first ?? end, end)),
    ),
    Effect.map((first) => first ?? null),
  )

/**
 * Locks a repository's objects at least until this time in epoch milliseconds. Uses the mode of the
 * object or its bucket, or else the mode that privileged users can override.
 */
export const extend = Effect.fnUntraced(function* (s3: OpenBucket, until: number) {
  const default_lock = yield* defaultLock(s3)
  const extendOne = Effect.fnUntraced(function* (key: string) {
    const lock = yield* ifExists(lockOf(s3, key))
    if (lock === undefined || (lock.until ?? 0) >= until) return
    const Mode = lock.mode ?? default_lock?.mode ?? "GOVERNANCE"
    const Retention = { Mode, RetainUntilDate: new Date(until) }
    const input = { Bucket: s3.name, Key: key, VersionId: lock.version_id, Retention }
    yield* ifExists(
      request(s3, (client, options) => client.send(new PutObjectRetentionCommand(input), options)),
    )
  })
  yield* liveKeys(s3).pipe(
    Stream.filter((key) => is_needed.test(key)),
    Stream.mapEffect(extendOne, { concurrency: requests_max }),
    Stream.runDrain,
  )
})

/** The lock of an object or one of its versions; `until` is in epoch milliseconds or null. */
export const lockOf = (s3: OpenBucket, key: string, version_id?: string) =>
  Effect.map(
    request(s3, (client, options) =>
      client.send(
        new HeadObjectCommand({ Bucket: s3.name, Key: key, VersionId: version_id }),
        options,
      ),
    ),
    (found) => ({
      version_id: found.VersionId,
      mode: found.ObjectLockMode,
      until: found.ObjectLockRetainUntilDate?.getTime() ?? null,
    }),
  )

/** An object removed since it was listed counts as never having existed. */
const ifExists = <A>(found: Effect.Effect<A, S3Failure>) =>
  Effect.catchIf(
    found,
    ({ kind }) => kind === "missing",
    () => Effect.undefined,
  )
