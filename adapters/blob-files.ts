/**
 * BlobStore on plain files: one file per blob, an SQLite index beside them, all of it in a worker.
 *
 * Source: document 1 §1, §4 BlobService; docs of the file's form in blob-files-format.ts.
 */
import { Clock, Effect, Layer, Option, Stream } from "effect"
import {
  BlobAlreadyExists,
  BlobCapacityExceeded,
  BlobCorrupt,
  BlobIdMismatch,
  BlobNotFound,
  type BlobPut,
  type BlobPutError,
  type BlobRange,
  type BlobReadError,
  BlobStore,
  BlobStoreFailed,
  BlobStoreReadOnly,
  BlobTooLarge,
  type BlobUsage,
  scan_limit_max,
} from "#actors/blob-storage/blob-store.ts"
import { type BlobId, blob_bytes_max, list_limit_max } from "#schemas/blob-storage/blob.ts"
import type { BlobFault } from "#actors/blob-storage/blob-fault.ts"
import { type Answer, startThread, type Thread } from "./blob-files-thread.ts"
import { makeUpload } from "./blob-files-upload.ts"

export interface BlobFilesOptions {
  /** The folder that the store has to itself. */
  readonly dir: string
  readonly capacity_bytes: number
  /** The largest blob; 5 TiB unless given. */
  readonly size_max_bytes?: number
}

type StoreError = BlobPutError | BlobReadError
type ErrorOf<Tag> = Extract<StoreError, { readonly _tag: Tag }>

const errorOf = (fault: BlobFault): StoreError => {
  switch (fault._tag) {
    case "BlobNotFound":
      return new BlobNotFound({ id: fault.id })
    case "BlobCorrupt":
      return new BlobCorrupt({ id: fault.id, detail: fault.detail })
    case "BlobAlreadyExists":
      return new BlobAlreadyExists({ id: fault.id, detail: fault.detail })
    case "BlobIdMismatch":
      return new BlobIdMismatch({ expected: fault.expected, actual: fault.actual })
    case "BlobTooLarge":
      return new BlobTooLarge({ bytes_max: fault.bytes_max })
    case "BlobCapacityExceeded":
      return new BlobCapacityExceeded({ detail: fault.detail })
    case "BlobStoreReadOnly":
      return new BlobStoreReadOnly({ detail: fault.detail })
    case "BlobStoreFailed":
      return new BlobStoreFailed({ detail: fault.detail })
  }
}

const index_faults = ["BlobStoreFailed"] as const
const stat_faults = ["BlobNotFound", "BlobStoreFailed"] as const
const read_faults = ["BlobNotFound", "BlobCorrupt", "BlobStoreFailed"] as const
const write_faults = ["BlobStoreReadOnly", "BlobCapacityExceeded", "BlobStoreFailed"] as const
const put_faults = [...write_faults, "BlobAlreadyExists", "BlobIdMismatch", "BlobTooLarge"] as const

/** Asks the worker; a fault outside the expected ones is a defect. */
const ask = <A, Tag extends BlobFault["_tag"]>(
  expected: ReadonlyArray<Tag>,
  question: () => Promise<Answer<A>>,
): Effect.Effect<A, ErrorOf<Tag>> =>
  Effect.flatMap(Effect.promise(question), (answer) => {
    if (answer.ok) return Effect.succeed(answer.value)
    const error = errorOf(answer.fault)
    const is_expected = expected.some((tag) => tag === error._tag)
    // `expected` holds the tag, so the error is one of the class that ErrorOf picks.
    return is_expected ? Effect.fail(error as ErrorOf<Tag>) : Effect.die(error)
  })

/** Nothing is written through a worker that is gone. */
const writable = (thread: Thread) =>
  Effect.suspend(() => {
    const detail = thread.death()
    return detail === undefined ? Effect.void : Effect.fail(new BlobStoreReadOnly({ detail }))
  })

const makePut = (thread: Thread, nextKey: () => number) => {
  const orderOf = ({ labels, policy, origin, expected_id, if_none_match }: BlobPut) => ({
    ...{ labels, policy, origin, expected_id },
    if_none_match: if_none_match ?? false,
  })
  return <E, R>(put: BlobPut, bytes: Stream.Stream<Uint8Array, E, R>) =>
    Effect.suspend(() => {
      const upload = makeUpload(thread, nextKey(), orderOf(put))
      const finish = Effect.flatMap(Clock.currentTimeNanos, (at) =>
        ask(put_faults, () => upload.finish(at)),
      )
      return writable(thread).pipe(
        Effect.andThen(
          Stream.runForEach(bytes, (part) => ask(put_faults, () => upload.write(part))),
        ),
        // The bytes are all there: from here on it is stored or it failed, and the caller is told.
        Effect.andThen(Effect.uninterruptible(finish)),
        Effect.ensuring(Effect.promise(upload.end)),
        Effect.map((stored) => ({ ...stored, size: stored.meta.size })),
      )
    })
}

const makeGet = (thread: Thread, nextKey: () => number) => {
  const windows = (id: BlobId, range: BlobRange) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeNanos
        const key = nextKey()
        yield* Effect.acquireRelease(
          ask(read_faults, () => thread.call("readOpen", [key, id, range, at])),
          () => Effect.promise(() => thread.call("readClose", [key])),
        )
        const next = ask(read_faults, () => thread.call("readNext", [key]))
        return Stream.paginate(key, () =>
          Effect.map(next, (bytes) =>
            bytes === undefined
              ? ([[], Option.none<number>()] as const)
              : ([[bytes], Option.some(key)] as const),
          ),
        )
      }),
    )
  return (id: BlobId, range: BlobRange = {}) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeNanos
      const first = yield* ask(read_faults, () => thread.call("get", [id, range, at]))
      const { meta, data } = first
      if (data === undefined) return { meta, bytes: windows(id, range) }
      return { meta, bytes: data.length === 0 ? Stream.empty : Stream.succeed(data) }
    })
}

const makeStore = (thread: Thread) => {
  let keys = 0
  const nextKey = () => {
    keys += 1
    return keys
  }
  let last_usage: BlobUsage = thread.usage

  const usage = Effect.suspend(() => {
    if (thread.death() !== undefined) return Effect.succeed({ ...last_usage, read_only: true })
    return Effect.map(
      ask(index_faults, () => thread.call("usage", [])),
      (now) => {
        last_usage = now
        return now
      },
    )
  })
  return BlobStore.of({
    put: makePut(thread, nextKey),
    get: makeGet(thread, nextKey),
    stat: (id) => ask(stat_faults, () => thread.call("stat", [id])),
    delete: (id, origin) =>
      Effect.gen(function* () {
        yield* writable(thread)
        const at = yield* Clock.currentTimeNanos
        yield* ask(write_faults, () => thread.call("delete", [id, origin, at]))
        return true as const
      }),
    tombstone: (id) => ask(index_faults, () => thread.call("tombstone", [id])),
    list: ({ after_id = "", prefix = "", limit }) =>
      ask(index_faults, () =>
        thread.call("list", [after_id, prefix, Math.min(limit, list_limit_max)]),
      ),
    usage,
    scan: (after_cursor, limit) =>
      ask(index_faults, () => thread.call("scan", [after_cursor, Math.min(limit, scan_limit_max)])),
    acknowledge: (cursor) =>
      Effect.andThen(
        writable(thread),
        ask(write_faults, () => thread.call("acknowledge", [cursor])),
      ),
  })
}

/** Opens the store for as long as the scope lasts; `worker` is the thread that it runs in. */
export const openBlobFiles = ({ dir, capacity_bytes, size_max_bytes }: BlobFilesOptions) =>
  Effect.gen(function* () {
    const at = yield* Clock.currentTimeNanos
    const limits = { capacity_bytes, size_max_bytes: size_max_bytes ?? blob_bytes_max }
    const started = yield* Effect.acquireRelease(
      Effect.promise(() => startThread({ dir, at, ...limits })),
      (thread) => (thread.ok ? Effect.promise(thread.value.shut) : Effect.void),
    )
    if (!started.ok) {
      const detail = "detail" in started.fault ? started.fault.detail : started.fault._tag
      return yield* new BlobStoreFailed({ detail: `The blob store cannot open: ${detail}` })
    }
    return { store: makeStore(started.value), worker: started.value.worker }
  })

/** BlobStore over a folder of plain files. */
export const blobFiles = (options: BlobFilesOptions) =>
  Layer.effect(
    BlobStore,
    Effect.map(openBlobFiles(options), ({ store }) => store),
  )
