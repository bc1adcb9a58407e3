/** In-memory S3 with the features that a repository needs: buckets, keys, versions and locks. */
import { Clock, DateTime, Effect, Layer, Redacted } from "effect"
import { type Bucket, Buckets, preflightDetail } from "#actors/share-protection/ports/buckets.ts"
import {
  BackendUnavailable,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import type { PreflightCheck } from "#schemas/share-protection/target.ts"
import type { AddressingMode } from "#schemas/share-protection/target-template.ts"

interface StoredObject {
  readonly bytes: Uint8Array
  /** In epoch milliseconds; undefined: not locked. */
  locked_until: number | undefined
}

export interface MemoryBucket {
  readonly access_key: string
  readonly secret_key: string
  is_reachable: boolean
  is_writable: boolean
  readonly addressing_modes: ReadonlyArray<AddressingMode>
  readonly has_versioning: boolean
  readonly has_object_lock: boolean
  /** Whether a lifecycle rule expires objects. */
  readonly has_expiration: boolean
  /** Retention of each new object's lock, in milliseconds; 0: no lock. */
  lock_ms: number
  /** Duration of each write, in milliseconds. */
  readonly write_ms: number
  readonly objects: Map<string, StoredObject>
  /** Noncurrent versions by key, newest last. */
  readonly versions: Map<string, ReadonlyArray<StoredObject>>
  /** Keys whose newest version is a delete marker. */
  readonly deleted: Set<string>
}

/** Buckets by endpoint and name. */
export type S3 = Map<string, MemoryBucket>

/** A correctly configured bucket. */
export const goodBucket: Omit<MemoryBucket, "objects" | "versions" | "deleted"> = {
  access_key: "AKMEMORY",
  secret_key: "secret-of-memory",
  is_reachable: true,
  is_writable: true,
  addressing_modes: ["path", "virtual"],
  has_versioning: true,
  has_object_lock: true,
  has_expiration: false,
  lock_ms: 0,
  write_ms: 0,
}

let made = 0

/** Creates a bucket and returns access to it. */
export const makeBucket = (s3: S3, properties: Partial<MemoryBucket> = {}): Bucket => {
  const bucket = `bucket-${++made}`
  const endpoint = "https://s3.example"
  const empty = { objects: new Map(), versions: new Map(), deleted: new Set<string>() }
  const memory = { ...goodBucket, ...empty, ...properties }
  s3.set(`${endpoint}/${bucket}`, memory)
  return {
    endpoint,
    bucket,
    region: null,
    addressing_mode: "path",
    ca_cert: null,
    access_key: Redacted.make(memory.access_key),
    secret_key: Redacted.make(memory.secret_key),
  }
}

/** The bucket that the keys give access to. */
export const openBucket = (
  s3: S3,
  { endpoint, bucket, access_key, secret_key }: Bucket,
): Effect.Effect<MemoryBucket, TrustAccessDenied | BackendUnavailable> => {
  const memory = s3.get(`${endpoint}/${bucket}`)
  if (memory === undefined || !memory.is_reachable) {
    return Effect.fail(new BackendUnavailable({ detail: `${endpoint} does not answer.` }))
  }
  const has_keys =
    Redacted.value(access_key) === memory.access_key &&
    Redacted.value(secret_key) === memory.secret_key
  return has_keys
    ? Effect.succeed(memory)
    : Effect.fail(new TrustAccessDenied({ detail: "The bucket does not accept the keys." }))
}

export const putObject = Effect.fnUntraced(function* (
  bucket: MemoryBucket,
  key: string,
  bytes: Uint8Array,
) {
  if (bucket.write_ms > 0) yield* Effect.sleep(bucket.write_ms)
  const now = yield* Clock.currentTimeMillis
  removeObject(bucket, key)
  bucket.deleted.delete(key)
  const locked_until = bucket.lock_ms > 0 ? now + bucket.lock_ms : undefined
  bucket.objects.set(key, { bytes, locked_until })
})

/** Keeps the object's version, as a versioned bucket does. */
export const removeObject = ({ objects, versions, deleted }: MemoryBucket, key: string) => {
  const object = objects.get(key)
  if (object === undefined) return
  versions.set(key, [...(versions.get(key) ?? []), object])
  objects.delete(key)
  deleted.add(key)
}

/** Deleted objects that a repository may need: neither locks nor keys of its engine. */
const deletedOf = ({ deleted, versions }: MemoryBucket, engine_snapshot_id: string) =>
  [...deleted]
    .filter((key) => recoverable.test(key) || key === `snapshots/${engine_snapshot_id}`)
    .map((key) => [key, versions.get(key)?.at(-1)] as const)

const recoverable = /^(data|index)\//

const hasSnapshot = ({ objects, versions }: MemoryBucket, engine_snapshot_id: string) => {
  const key = `snapshots/${engine_snapshot_id}`
  return objects.has(key) || (versions.get(key) ?? []).length > 0
}

/** Objects that a repository needs: everything except its engine's temporary locks. */
const needed = ({ objects }: MemoryBucket) =>
  [...objects].filter(([key]) => !key.startsWith("locks/")).map(([, object]) => object)

const iso = (time: number) => DateTime.formatIso(DateTime.makeUnsafe(time))

const failedCheck = (
  memory: MemoryBucket | undefined,
  { access_key, secret_key, addressing_mode }: Bucket,
  shape: "A" | "B",
): PreflightCheck | undefined => {
  if (memory === undefined || !memory.is_reachable) return "reachability"
  const has_keys =
    Redacted.value(access_key) === memory.access_key &&
    Redacted.value(secret_key) === memory.secret_key
  if (!has_keys || !memory.is_writable) return "read_write"
  if (!memory.addressing_modes.includes(addressing_mode)) return "addressing_style"
  if (!memory.has_versioning && shape === "B") return "versioning"
  if (!memory.has_object_lock) return "object_lock"
  return memory.has_expiration ? "lifecycle" : undefined
}

export const bucketsMemory = (s3: S3) =>
  Layer.succeed(Buckets, {
    preflight: (bucket, { shape }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const memory = s3.get(`${bucket.endpoint}/${bucket.bucket}`)
        const check = failedCheck(memory, bucket, shape)
        if (check !== undefined || memory === undefined) {
          const detail = preflightDetail(check ?? "reachability", "the bucket failed it.")
          return Effect.fail(new TargetPreflightFailed({ detail }))
        }
        return Effect.succeed({
          object_lock: memory.has_object_lock,
          versioning: memory.has_versioning,
          lifecycle: !memory.has_expiration,
          addressing_mode: bucket.addressing_mode,
          checked_at: iso(now),
        })
      }),
    reach: (bucket) => Effect.asVoid(openBucket(s3, bucket)),
    usage: Effect.fnUntraced(function* (bucket) {
      const { objects, versions } = yield* openBucket(s3, bucket)
      const sizeOf = (all: Iterable<StoredObject>) =>
        [...all].reduce((sum, { bytes }) => sum + bytes.length, 0)
      const current = sizeOf(objects.values())
      const noncurrent_bytes = sizeOf([...versions.values()].flat())
      return {
        stored_bytes: current + noncurrent_bytes,
        noncurrent_bytes,
        objects: objects.size,
        measured_at: iso(yield* Clock.currentTimeMillis),
      }
    }),
    protectedUntil: (bucket) =>
      Effect.map(openBucket(s3, bucket), (memory) => {
        const locks = needed(memory).map(({ locked_until }) => locked_until ?? -Infinity)
        const first = Math.min(...locks)
        return Number.isFinite(first) ? iso(first) : null
      }),
    extendLocks: (bucket, until) =>
      Effect.map(openBucket(s3, bucket), (memory) => {
        const time = DateTime.toEpochMillis(DateTime.makeUnsafe(until))
        for (const object of needed(memory)) {
          object.locked_until = Math.max(object.locked_until ?? time, time)
        }
      }),
    retention: (bucket) =>
      Effect.map(openBucket(s3, bucket), ({ lock_ms }) => (lock_ms > 0 ? lock_ms / 1000 : null)),
    purge: Effect.fnUntraced(function* (bucket) {
      const memory = yield* openBucket(s3, bucket)
      return purge(memory, yield* Clock.currentTimeMillis)
    }),
    recoverableUntil: Effect.fnUntraced(function* (bucket, engine_snapshot_id) {
      const memory = yield* openBucket(s3, bucket)
      if (!hasSnapshot(memory, engine_snapshot_id)) return null
      const lost = deletedOf(memory, engine_snapshot_id)
      const first = Math.min(...lost.map(([, object]) => object?.locked_until ?? -Infinity))
      const now = yield* Clock.currentTimeMillis
      return Number.isFinite(first) && first > now ? iso(first) : null
    }),
    undelete: (bucket, engine_snapshot_id) =>
      Effect.map(openBucket(s3, bucket), (memory) => undelete(memory, engine_snapshot_id)),
  })

const purge = ({ versions, deleted, objects }: MemoryBucket, now: number) => {
  let purged = 0
  for (const [key, all] of versions) {
    if (!key.startsWith("locks/")) continue
    const left = all.filter(({ locked_until }) => (locked_until ?? 0) > now)
    purged += all.length - left.length
    versions.set(key, left)
    if (left.length > 0 || objects.has(key)) continue
    versions.delete(key)
    if (deleted.delete(key)) purged++
  }
  return purged
}

const undelete = (memory: MemoryBucket, engine_snapshot_id: string) => {
  if (!hasSnapshot(memory, engine_snapshot_id)) return false
  const lost = deletedOf(memory, engine_snapshot_id)
  if (lost.some(([, object]) => object === undefined)) return false
  for (const [key, object] of lost) {
    if (object === undefined) continue
    memory.objects.set(key, object)
    memory.deleted.delete(key)
    memory.versions.set(key, memory.versions.get(key)?.slice(0, -1) ?? [])
  }
  return true
}
