/**
 * Locks of a repository's objects: for how long they hold, and making them longer.
 *
 * One request for each object, since no listing tells: 100,000 of them take some minutes.
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

/** A repository's objects lie at the bucket's root; the engine's locks come and go. */
const is_needed = /^(config$|(data|index|keys|snapshots)\/)/

const day_s = 86_400
/** S3's own reckoning of a year. */
const year_days = 365

/** What a bucket locks by itself: in which mode, and for how many seconds. */
export interface DefaultLock {
  readonly mode: ObjectLockRetentionMode
  readonly seconds: number
}

/** Undefined where the bucket has no object lock; null where it locks nothing by itself. */
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
    Effect.catchIf(has_none, () => Effect.undefined),
  )

const has_none = ({ code }: S3Failure) => code === "ObjectLockConfigurationNotFoundError"

/** Epoch milliseconds, or null: until when all that a repository needs is locked at least. */
export const lockedUntil = (s3: OpenBucket) =>
  liveKeys(s3).pipe(
    Stream.filter((key) => is_needed.test(key)),
    Stream.mapEffect((key) => ifThere(lockOf(s3, key)), { concurrency: requests_max }),
    Stream.filter((lock) => lock !== undefined),
    Stream.map(({ until }) => until),
    earliest,
  )

/** The least of them; null where there is none, or one of them is null, which ends the search. */
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
 * Locks what a repository needs until then (epoch milliseconds) at least. In the mode that an
 * object or its bucket has; where neither has one, in the mode that its owner can end.
 */
export const extend = Effect.fnUntraced(function* (s3: OpenBucket, until: number) {
  const own = yield* defaultLock(s3)
  const longer = Effect.fnUntraced(function* (key: string) {
    const lock = yield* ifThere(lockOf(s3, key))
    if (lock === undefined || (lock.until ?? 0) >= until) return
    const Mode = lock.mode ?? own?.mode ?? "GOVERNANCE"
    const Retention = { Mode, RetainUntilDate: new Date(until) }
    const put = { Bucket: s3.name, Key: key, VersionId: lock.version_id, Retention }
    yield* ifThere(
      request(s3, (client, options) => client.send(new PutObjectRetentionCommand(put), options)),
    )
  })
  yield* liveKeys(s3).pipe(
    Stream.filter((key) => is_needed.test(key)),
    Stream.mapEffect(longer, { concurrency: requests_max }),
    Stream.runDrain,
  )
})

/** The lock of an object, or of one version of it; `until` in epoch milliseconds or null. */
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

/** What was removed since it was listed counts as never having been there. */
const ifThere = <A>(found: Effect.Effect<A, S3Failure>) =>
  Effect.catchIf(
    found,
    ({ kind }) => kind === "missing",
    () => Effect.undefined,
  )
