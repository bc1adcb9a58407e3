/**
 * Preflight of a bucket: tests each requirement by using it.
 *
 * Source: document 2 §4 rule 6; DECISIONS, document 2, preflight.
 */
import { createHash, randomUUID } from "node:crypto"
import { isIP } from "node:net"
import {
  DeleteObjectCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  type LifecycleRule,
  ListBucketsCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
} from "@aws-sdk/client-s3"
import { Clock, DateTime, Effect, Result } from "effect"
import { type Bucket, preflightDetail } from "#actors/share-protection/ports/buckets.ts"
import {
  type OpenBucket,
  request,
  type S3Bounds,
  withBucket,
} from "#adapters/share-protection/s3/client.ts"
import { S3Failure } from "#adapters/share-protection/s3/failure.ts"
import { defaultLock, lockOf } from "#adapters/share-protection/s3/locks.ts"
import { canary_prefix, remove } from "#adapters/share-protection/s3/versions.ts"
import { TargetPreflightFailed } from "#schemas/share-protection/rejection.ts"
import type { Capabilities, PreflightCheck } from "#schemas/share-protection/target.ts"

/**
 * Lock duration of the canary in seconds: its removal is attempted meanwhile, and clocks differ.
 */
const canary_lock_s = 60

/** Runs the checks in the order of `PreflightCheck`; fails with the first failed check. */
export const preflight = Effect.fnUntraced(function* (
  bucket: Bucket,
  shape: "A" | "B",
  bounds: S3Bounds,
) {
  return yield* withBucket(bucket, bounds, (s3) =>
    Effect.gen(function* () {
      yield* asCheck("reachability", reachable(s3))
      yield* writable(s3, bucket)
      const versioning = yield* asCheck("versioning", hasVersions(s3))
      if (shape === "B" && !versioning)
        return yield* failed("versioning", "the bucket keeps no versions.")
      yield* locking(s3)
      const expiring = yield* asCheck("lifecycle", expiringRule(s3))
      if (expiring !== undefined) {
        return yield* failed("lifecycle", `the rule ${expiring} lets objects expire.`)
      }
      const capabilities: Capabilities = {
        object_lock: true,
        versioning,
        lifecycle: true,
        addressing_mode: bucket.addressing_mode,
        checked_at: DateTime.formatIso(yield* DateTime.now),
      }
      return capabilities
    }),
  )
})

const failed = (check: PreflightCheck, why: string) =>
  new TargetPreflightFailed({ detail: preflightDetail(check, why) })

const asCheck = <A>(check: PreflightCheck, effect: Effect.Effect<A, S3Failure>) =>
  Effect.mapError(effect, ({ message }) => failed(check, `the S3 service ${message}.`))

/** Any response counts, even a refusal. */
const reachable = (s3: OpenBucket) =>
  request(s3, (client, options) => client.send(new ListBucketsCommand({}), options)).pipe(
    Effect.asVoid,
    Effect.catchIf(
      ({ kind }) => kind !== "unreachable",
      () => Effect.void,
    ),
  )

/** If only the other addressing style works, the configured one is wrong. */
const writable = Effect.fnUntraced(function* (s3: OpenBucket, bucket: Bucket) {
  const result = yield* Effect.result(roundTrip(s3, bucket))
  if (Result.isSuccess(result)) return
  const addressing_mode = bucket.addressing_mode === "path" ? "virtual" : "path"
  const other = { ...bucket, addressing_mode } as const
  const other_result = yield* Effect.result(
    withBucket(other, s3.bounds, (open) => roundTrip(open, other)),
  )
  if (Result.isSuccess(other_result)) {
    const why = `the S3 service accepts this bucket only with addressing_mode ${addressing_mode}.`
    return yield* failed("addressing_style", why)
  }
  const { message } = result.failure.code === no_subdomains ? other_result.failure : result.failure
  return yield* failed("read_write", `the S3 service ${message}.`)
})

/** Writes, reads and removes a canary. */
const roundTrip = Effect.fnUntraced(function* (s3: OpenBucket, bucket: Bucket) {
  if (!hasStyle(bucket)) {
    return yield* oddFailure("has no subdomains for buckets", no_subdomains)
  }
  const { key, text, version_id } = yield* putCanary(s3)
  const read = yield* request(s3, async (client, options) => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket: s3.name, Key: key }), options)
    return await Body?.transformToString()
  })
  yield* hide(s3, key)
  if (read !== text) return yield* oddFailure("returned different bytes than were written")
  // Fails if the bucket locks new objects; then the canary stays until a purge.
  if (version_id !== undefined) yield* Effect.ignore(remove(s3, { key, version_id }))
})

const no_subdomains = "NoSubdomains"

/**
 * Subdomains work neither with an IP address, nor over TLS if the bucket's name has dots, because
 * wildcard certificates cover one label. The SDK would silently use path style instead.
 */
const hasStyle = ({ addressing_mode, endpoint, bucket }: Bucket) => {
  const { hostname, protocol } = new URL(endpoint)
  const is_number = isIP(hostname.replaceAll(/[[\]]/g, "")) !== 0
  return addressing_mode === "path" || !(is_number || (protocol === "https:" && /\./.test(bucket)))
}

const hasVersions = (s3: OpenBucket) =>
  Effect.map(
    request(s3, (client, options) =>
      client.send(new GetBucketVersioningCommand({ Bucket: s3.name }), options),
    ),
    ({ Status }) => Status === "Enabled",
  )

/**
 * Verifies object lock by trying to remove a locked canary, because the bucket's own claim is not
 * enough. The lock must also be reported, because keys without the permission to delete would be
 * refused too.
 */
const locking = Effect.fnUntraced(function* (s3: OpenBucket) {
  const default_lock = yield* asCheck("object_lock", defaultLock(s3))
  if (default_lock === undefined)
    return yield* failed("object_lock", "the bucket has no default lock.")
  const until = (yield* Clock.currentTimeMillis) + canary_lock_s * 1000
  const { key, version_id } = yield* asCheck(
    "object_lock",
    putCanary(s3, {
      ObjectLockMode: default_lock?.mode ?? "COMPLIANCE",
      ObjectLockRetainUntilDate: new Date(until),
    }),
  )
  if (version_id === undefined) {
    return yield* failed("object_lock", "new objects get no version.")
  }
  const lock = yield* asCheck("object_lock", lockOf(s3, key, version_id))
  const rejection = yield* Effect.flip(remove(s3, { key, version_id })).pipe(
    Effect.mapError(() => failed("object_lock", "a locked object could be deleted.")),
  )
  if (rejection.kind !== "denied") return yield* asCheck("object_lock", Effect.fail(rejection))
  // S3 rounds a lock's end to seconds.
  if (lock.until === null || lock.until < until - 1000) {
    return yield* failed("object_lock", "a locked object does not report its lock.")
  }
  yield* Effect.ignore(hide(s3, key))
})

type CanaryLock = Pick<PutObjectCommandInput, "ObjectLockMode" | "ObjectLockRetainUntilDate">

/** MD5, which every server supports and S3 requires for locked objects. */
const putCanary = (s3: OpenBucket, lock: CanaryLock = {}) => {
  const key = `${canary_prefix}${randomUUID()}`
  const text = `almanac ${randomUUID()}\n`
  const ContentMD5 = createHash("md5").update(text).digest("base64")
  const input = { Bucket: s3.name, Key: key, Body: text, ContentMD5, ...lock }
  return Effect.map(
    request(s3, (client, options) => client.send(new PutObjectCommand(input), options)),
    ({ VersionId }) => ({ key, text, version_id: VersionId }),
  )
}

const hide = (s3: OpenBucket, key: string) =>
  request(s3, (client, options) =>
    client.send(new DeleteObjectCommand({ Bucket: s3.name, Key: key }), options),
  )

/**
 * The name of a lifecycle rule that would expire a repository's objects; undefined if there is
 * none.
 */
const expiringRule = (s3: OpenBucket) =>
  request(s3, (client, options) =>
    client.send(new GetBucketLifecycleConfigurationCommand({ Bucket: s3.name }), options),
  ).pipe(
    Effect.map(({ Rules = [] }) => {
      const rule = Rules.find(expires)
      return rule === undefined ? undefined : `"${(rule.ID ?? "").slice(0, rule_chars_max)}"`
    }),
    Effect.catchIf(
      ({ code }) => code === "NoSuchLifecycleConfiguration" || code === "NotImplemented",
      () => Effect.undefined,
    ),
  )

/** S3's limit for the name of a rule. */
const rule_chars_max = 255

/** Aborting incomplete uploads and removing expired delete markers loses no data. */
const expires = ({ Status, Expiration, NoncurrentVersionExpiration, ...rule }: LifecycleRule) => {
  const has_end = Expiration?.Days !== undefined || Expiration?.Date !== undefined
  if (Status !== "Enabled" || !(has_end || NoncurrentVersionExpiration !== undefined)) return false
  const prefix = rule.Filter?.Prefix ?? rule.Filter?.And?.Prefix ?? rule.Prefix ?? ""
  return repository_prefixes.some((path) => path.startsWith(prefix) || prefix.startsWith(path))
}

const repository_prefixes = ["config", "data/", "index/", "keys/", "locks/", "snapshots/"]

const oddFailure = (message: string, code = "") => new S3Failure({ kind: "odd", code, message })
