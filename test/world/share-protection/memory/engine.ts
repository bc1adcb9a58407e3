/**
 * The in-memory engine. It stores real bytes of real folders in a bucket's objects as restic does:
 * a config, a key, content-addressed data, snapshots, locks. Only tests use it.
 */
import { Clock, DateTime, Effect, Layer, Redacted } from "effect"
import {
  Engine,
  type EngineFailure,
  type FolderBackup,
  type FolderRestore,
  type OnProgress,
  type Repository,
} from "#actors/share-protection/ports/engine.ts"
import { RepositoryLocked, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { type MemoryBucket, openBucket, putObject, removeObject, type S3 } from "./buckets.ts"
import {
  bytesOf,
  extras,
  fails,
  plan,
  prove,
  readSnapshots,
  type StoredEntry,
  type StoredSnapshot,
  sha256,
  textOf,
  wanted,
} from "./engine-store.ts"
import { entriesOf, readEntry, removeEntry, writeEntry } from "./snapshot-files.ts"

export type EngineCall =
  | "init"
  | "backup"
  | "restore"
  | "plan"
  | "prove"
  | "forget"
  | "maintain"
  | "upgrade"
  | "snapshots"
  | "unlock"

/** A fault of a call: before it, in the middle of it, or after its work is done. */
export type Mishap =
  | { readonly fails: EngineFailure; readonly when: "before" | "after" }
  /** The call neither returns nor fails. */
  | { readonly hangs: true }
  /** kill -9: the call's lock remains. */
  | { readonly dies: true }
  /** A bug in the adapter. */
  | { readonly throws: Error }

/** Faults that a test injects into the engine, and a record of its calls. */
export interface EngineTroubles {
  /** Applied to the next call with that name. */
  readonly next: Map<EngineCall, Mishap>
  /** Unreadable files, by absolute path. */
  readonly unreadable: Set<string>
  readonly calls: Array<EngineCall>
  /** Calls that have begun and not ended. */
  running: number
}

export const noTroubles = (): EngineTroubles => ({
  next: new Map(),
  unreadable: new Set(),
  calls: [],
  running: 0,
})

/** A process takes a moment to exit. */
const stop_ms = 30

const newest_format = 2
const profile = "memory/none"

const formatOf = ({ objects }: MemoryBucket): number | undefined => {
  const config = objects.get("config")
  return config && JSON.parse(textOf(config.bytes)).format
}

/** The bucket of a repository that this password opens. */
const open = Effect.fnUntraced(function* (s3: S3, repository: Repository) {
  const bucket = yield* bucketOf(s3, repository)
  const key = bucket.objects.get("keys/1")
  if (key === undefined) return yield* fails("There is no repository.", true)
  if (textOf(key.bytes) === sha256(Redacted.value(repository.password))) return bucket
  return yield* new TrustAccessDenied({ detail: "The password does not open the repository." })
})

const bucketOf = (s3: S3, repository: Repository) =>
  Effect.mapError(openBucket(s3, repository), (failure) =>
    failure instanceof TrustAccessDenied ? failure : fails(failure.detail, true),
  )

/** Creates a repository of any format. */
export const makeRepository = Effect.fnUntraced(function* (
  s3: S3,
  repository: Repository,
  format: number,
) {
  const bucket = yield* bucketOf(s3, repository)
  yield* putObject(bucket, "config", bytesOf({ format }))
  const password = sha256(Redacted.value(repository.password))
  yield* putObject(bucket, "keys/1", new TextEncoder().encode(password))
})

let locks_made = 0

/** Runs an engine call under its lock, with the test's injected fault. */
const calling =
  (s3: S3, troubles: EngineTroubles) =>
  <A>(
    call: EngineCall,
    lock: "shared" | "exclusive" | "none",
    repository: Repository,
    work: (
      bucket: MemoryBucket,
      middle: Effect.Effect<void, EngineFailure>,
    ) => Effect.Effect<A, EngineFailure>,
  ): Effect.Effect<A, EngineFailure> => {
    let has_died = false
    const run = Effect.gen(function* () {
      troubles.calls.push(call)
      const mishap = troubles.next.get(call)
      troubles.next.delete(call)
      if (mishap && "fails" in mishap && mishap.when === "before") return yield* mishap.fails
      const bucket = yield* open(s3, repository)
      const middle = Effect.suspend((): Effect.Effect<void, EngineFailure> => {
        if (mishap === undefined || "fails" in mishap) return Effect.void
        if ("hangs" in mishap) return Effect.onInterrupt(Effect.never, () => Effect.sleep(stop_ms))
        if ("throws" in mishap) return Effect.die(mishap.throws)
        has_died = true
        return Effect.fail(fails("The engine was killed."))
      })
      const done = yield* locked(bucket, lock, () => has_died, work(bucket, middle))
      if (mishap && "fails" in mishap) return yield* mishap.fails
      return done
    })
    return Effect.acquireUseRelease(
      Effect.sync(() => troubles.running++),
      () => run,
      () => Effect.sync(() => troubles.running--),
    )
  }

const locked = <A>(
  bucket: MemoryBucket,
  lock: "shared" | "exclusive" | "none",
  hasDied: () => boolean,
  work: Effect.Effect<A, EngineFailure>,
) => {
  if (lock === "none") return work
  const key = `locks/${++locks_made}`
  return Effect.acquireUseRelease(
    Effect.suspend(() => {
      const present = [...bucket.objects].filter(([key]) => key.startsWith("locks/"))
      const hindering = present.filter(
        ([, { bytes }]) => lock === "exclusive" || JSON.parse(textOf(bytes)).lock === "exclusive",
      )
      if (hindering.length > 0) {
        const detail = `The engine's own lock ${hindering[0]?.[0]} is held.`
        return Effect.fail(new RepositoryLocked({ detail }))
      }
      return putObject(bucket, key, bytesOf({ lock }))
    }),
    () => work,
    () =>
      Effect.sync(() => {
        if (!hasDied()) return removeObject(bucket, key)
        // A dead engine does not remove its lock; unlock recognizes it by this flag.
        bucket.objects.set(key, {
          bytes: bytesOf({ lock, is_dead: true }),
          locked_until: undefined,
        })
      }),
  )
}

const backUp = Effect.fnUntraced(function* (
  bucket: MemoryBucket,
  { path, host, tags, include_patterns, exclude_patterns }: FolderBackup,
  onProgress: OnProgress,
  unreadable: ReadonlySet<string>,
  middle: Effect.Effect<void, EngineFailure>,
) {
  const taken_at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const found = yield* Effect.tryPromise({
    try: () => entriesOf(path, include_patterns, exclude_patterns),
    catch: () => fails("The folder cannot be read.", true),
  })
  const entries: Array<StoredEntry> = []
  let bytes = 0
  let stored_bytes = 0
  for (const [index, entry] of found.entries()) {
    if (index === Math.floor(found.length / 2)) yield* middle
    if (unreadable.has(`${path}${entry.path}`)) continue
    if (entry.kind !== "file") {
      entries.push({ ...entry, size: 0 })
      continue
    }
    const content = yield* Effect.promise(() => readEntry(path, entry))
    const data = `data/${sha256(content)}`
    if (!bucket.objects.has(data)) {
      stored_bytes += content.length
      yield* putObject(bucket, data, content)
    }
    bytes += content.length
    entries.push({ ...entry, size: content.length, data })
    // Like restic's progress: reaches 100 before the end, and falls when more files are found.
    const percent = (100 * (index + 1)) / found.length
    yield* onProgress({ percent, bytes_done: bytes, bytes_total: bytes })
    yield* onProgress({ percent: percent / 2, bytes_done: bytes, bytes_total: 2 * bytes })
  }
  if (found.length === 0) yield* middle
  const files = entries.filter(({ kind }) => kind === "file").length
  const counts = { bytes, stored_bytes, files }
  const scope = { include_patterns, exclude_patterns }
  const snapshot: StoredSnapshot = { tags, host, taken_at, ...counts, scope, entries }
  const written = bytesOf(snapshot)
  const engine_snapshot_id = sha256(written)
  yield* putObject(bucket, `snapshots/${engine_snapshot_id}`, written)
  const unread = found.flatMap((one) => (unreadable.has(`${path}${one.path}`) ? one.path : []))
  const partial = unread.length > 0
  return { engine_snapshot_id, taken_at, partial, unread, bytes, stored_bytes, files }
})

const restore = Effect.fnUntraced(function* (
  bucket: MemoryBucket,
  folder: FolderRestore,
  onProgress: OnProgress,
  middle: Effect.Effect<void, EngineFailure>,
) {
  const { path, is_exact } = folder
  const { snapshot, entries } = yield* wanted(bucket, folder)
  if (is_exact) {
    for (const extra of yield* extras(folder, snapshot, entries)) {
      yield* Effect.promise(() => removeEntry(path, extra))
    }
  }
  const total = snapshot.entries.reduce((sum, { size }) => sum + size, 0)
  let bytes = 0
  let files = 0
  for (const [index, entry] of snapshot.entries.entries()) {
    if (index === Math.floor(snapshot.entries.length / 2)) yield* middle
    if (!entries.includes(entry)) continue
    const content = entry.data === undefined ? undefined : bucket.objects.get(entry.data)?.bytes
    if (entry.kind === "file" && content === undefined) {
      return yield* fails("The repository lacks data of the snapshot.")
    }
    yield* Effect.tryPromise({
      try: () => writeEntry(path, entry, content ?? new Uint8Array()),
      catch: () => fails("The folder cannot be written."),
    })
    if (entry.kind !== "file") continue
    bytes += entry.size
    files++
    yield* onProgress({
      percent: total === 0 ? 100 : (100 * bytes) / total,
      bytes_done: bytes,
      bytes_total: total,
    })
  }
  return { files, bytes }
})

/** Deletes objects that no snapshot needs; fails if a needed object is missing. */
const maintain = (bucket: MemoryBucket): Effect.Effect<void, EngineFailure> =>
  Effect.suspend(() => {
    const needed = new Set(
      readSnapshots(bucket).flatMap(([, { entries }]) => entries.flatMap(({ data }) => data ?? [])),
    )
    for (const key of bucket.objects.keys()) {
      if (key.startsWith("data/") && !needed.has(key)) removeObject(bucket, key)
    }
    const is_whole = [...needed].every((key) => bucket.objects.has(key))
    return is_whole ? Effect.void : Effect.fail(fails("The repository lacks data."))
  })

const removeDeadLocks = (bucket: MemoryBucket) => {
  for (const [key, { bytes }] of bucket.objects) {
    if (key.startsWith("locks/") && JSON.parse(textOf(bytes)).is_dead) removeObject(bucket, key)
  }
}

/** The engine on these buckets. */
export const engineMemory = (s3: S3, troubles: EngineTroubles = noTroubles()) => {
  const call = calling(s3, troubles)
  return Layer.succeed(Engine, {
    version: "0.0.0-memory",
    is_fips: false,
    init: (repository) =>
      Effect.gen(function* () {
        const bucket = yield* bucketOf(s3, repository)
        if (!bucket.objects.has("keys/1")) yield* makeRepository(s3, repository, newest_format)
        return yield* call("init", "none", repository, (bucket, middle) =>
          Effect.as(middle, { format: formatOf(bucket) ?? newest_format, profile }),
        )
      }),
    backup: (repository, folder, onProgress) =>
      call("backup", "shared", repository, (bucket, middle) =>
        backUp(bucket, folder, onProgress, troubles.unreadable, middle),
      ),
    restore: (repository, folder, onProgress) =>
      call("restore", "shared", repository, (bucket, middle) =>
        restore(bucket, folder, onProgress, middle),
      ),
    plan: (repository, folder) =>
      call("plan", "shared", repository, (bucket, middle) =>
        Effect.andThen(middle, plan(bucket, folder)),
      ),
    prove: (repository, sample) =>
      call("prove", "shared", repository, (bucket, middle) =>
        Effect.andThen(middle, prove(bucket, sample)),
      ),
    forget: (repository, ids) =>
      call("forget", "exclusive", repository, (bucket, middle) =>
        Effect.map(middle, () => {
          for (const id of ids) removeObject(bucket, `snapshots/${id}`)
        }),
      ),
    maintain: (repository) =>
      call("maintain", "exclusive", repository, (bucket, middle) =>
        Effect.andThen(middle, maintain(bucket)),
      ),
    upgrade: (repository) =>
      call("upgrade", "exclusive", repository, (bucket, middle) =>
        middle.pipe(
          Effect.andThen(putObject(bucket, "config", bytesOf({ format: newest_format }))),
          Effect.as({ to_format: newest_format }),
        ),
      ),
    snapshots: (repository) =>
      call("snapshots", "none", repository, (bucket, middle) =>
        Effect.map(middle, () =>
          readSnapshots(bucket).map(
            ([engine_snapshot_id, { entries: _, scope: _of, ...snapshot }]) => ({
              engine_snapshot_id,
              ...snapshot,
            }),
          ),
        ),
      ),
    unlock: (repository) =>
      call("unlock", "none", repository, (bucket, middle) =>
        Effect.map(middle, () => removeDeadLocks(bucket)),
      ),
  })
}
