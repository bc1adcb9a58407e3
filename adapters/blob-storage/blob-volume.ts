/**
 * BlobStore over a volume: the port's effects and errors around the engine's promises and faults.
 *
 * Source: document 1 §1, §4 BlobService; docs/decisions/0110-volume-store.md.
 */
import { Clock, Context, Effect, Layer, Stream, Struct } from "effect"
import { type BlobEngine, HotEngine } from "#actors/blob-storage/blobs/engine.ts"
import { type BlobFault, faultOf } from "#actors/blob-storage/blobs/fault.ts"
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
  BlobShardsFailed,
  BlobStore,
  BlobStoreFailed,
  BlobStoreReadOnly,
  BlobTooFewNodes,
  BlobTooLarge,
  BlobUnreachable,
  scan_limit_max,
} from "#actors/blob-storage/blobs/store.ts"
import { type BlobId, blob_bytes_max, list_limit_max } from "#schemas/blob-storage/blob.ts"
import { floorOf, holdFolder, openVolume, type VolumeEngine, volumeFolder } from "#volume"
import { makePut } from "./blob-volume-put.ts"

export interface BlobVolumeOptions {
  /** The folder that the store has to itself; the volume is `volume/` in it. */
  readonly dir: string
  /** 0: 90% of the disk. */
  readonly capacity_bytes: number
  /** Free bytes that puts leave on the disk; the documented default where it is 0 or not given. */
  readonly free_floor_bytes?: number
  /** The largest blob; 5 TiB unless given. */
  readonly size_max_bytes?: number
  /** Length of a new file of the volume, in bytes; 64 MiB unless given. */
  readonly segment_bytes?: number
  /** How fast stored bytes are verified in the background; 0, unless given: not at all. */
  readonly scrub_bytes_per_second?: number
  /** The last fact of this node that the log has; 0 unless given. */
  readonly goes_on_after?: number
}

const segment_bytes_default = 64 * 2 ** 20

type StoreError = BlobPutError | BlobReadError
type ErrorOf<Tag> = Extract<StoreError, { readonly _tag: Tag }>

const errorOf = (fault: BlobFault): StoreError => {
  switch (fault._tag) {
    case "BlobNotFound":
      return new BlobNotFound(Struct.omit(fault, ["_tag"]))
    case "BlobCorrupt":
      return new BlobCorrupt({ id: fault.id, detail: fault.detail })
    case "BlobAlreadyExists":
      return new BlobAlreadyExists({ id: fault.id, detail: fault.detail })
    case "BlobIdMismatch":
      return new BlobIdMismatch({ expected: fault.expected, actual: fault.actual })
    case "BlobDeletedHere":
      throw new Error("only a copy of another node's is refused for a deletion")
    case "BlobTooLarge":
      return new BlobTooLarge({ bytes_max: fault.bytes_max })
    case "BlobCapacityExceeded":
      return new BlobCapacityExceeded({ detail: fault.detail })
    case "BlobStoreReadOnly":
      return new BlobStoreReadOnly({ detail: fault.detail })
    case "BlobStoreFailed":
      return new BlobStoreFailed({ detail: fault.detail })
    case "BlobTooFewNodes":
      return new BlobTooFewNodes({ have: fault.have, need: fault.need })
    case "BlobShardsFailed":
      return new BlobShardsFailed({ detail: fault.detail, is_full: fault.is_full === true })
    case "BlobUnreachable":
      return new BlobUnreachable({ detail: fault.detail })
  }
}

const index_faults = ["BlobStoreFailed"] as const
const list_faults = ["BlobUnreachable", "BlobStoreFailed"] as const
const stat_faults = ["BlobNotFound", "BlobUnreachable", "BlobStoreFailed"] as const
const read_faults = [...stat_faults, "BlobCorrupt"] as const
const write_faults = ["BlobStoreReadOnly", "BlobCapacityExceeded", "BlobStoreFailed"] as const
const put_faults = [
  ...write_faults,
  "BlobAlreadyExists",
  "BlobIdMismatch",
  "BlobTooLarge",
  "BlobTooFewNodes",
  "BlobShardsFailed",
  "BlobUnreachable",
] as const

/** What a thrown cause is; one outside the expected errors is a defect. */
const expecting =
  <Tag extends BlobFault["_tag"]>(expected: ReadonlyArray<Tag>) =>
  (cause: unknown): ErrorOf<Tag> => {
    const error = errorOf(faultOf(cause))
    if (!expected.some((tag) => tag === error._tag)) throw error
    // `expected` holds the tag, so the error is one of the class that ErrorOf picks.
    return error as ErrorOf<Tag>
  }

/** Asks the engine. */
const ask = <A, Tag extends BlobFault["_tag"]>(
  expected: ReadonlyArray<Tag>,
  question: () => Promise<A>,
): Effect.Effect<A, ErrorOf<Tag>> =>
  Effect.tryPromise({ try: question, catch: expecting(expected) })

/** Gives an upload its next bytes: no effect waits where the engine does not. */
const feed = (write: () => Promise<void> | undefined) =>
  Effect.suspend(() => {
    try {
      const waiting = write()
      return waiting === undefined ? Effect.void : ask(put_faults, () => waiting)
    } catch (cause) {
      return Effect.fail(expecting(put_faults)(cause))
    }
  })

const putInto =
  (engine: BlobEngine) =>
  <E, R>(put: BlobPut, bytes: Stream.Stream<Uint8Array, E, R>) =>
    Effect.suspend(() => {
      const { labels, policy, origin, expected_id, if_none_match = false, bytes_max } = put
      const order = { labels, policy, origin, expected_id, if_none_match, length: bytes_max }
      const upload = makePut(engine, order, bytes_max)
      const finish = Effect.flatMap(Clock.currentTimeNanos, (at) =>
        ask(put_faults, () => upload.finish(at)),
      )
      const writing = Stream.runForEach(bytes, (part) => feed(() => upload.write(part)))
      return Effect.andThen(feed(upload.begin), writing).pipe(
        // The bytes are all there: from here on it is stored or it failed, and the caller is told.
        Effect.andThen(Effect.uninterruptible(finish)),
        Effect.ensuring(Effect.promise(upload.end)),
        Effect.map((stored) => ({ ...stored, size: stored.meta.size })),
      )
    })

const getFrom =
  (engine: BlobEngine) =>
  (id: BlobId, range: BlobRange = {}) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeNanos
      const { meta, data, windows } = yield* ask(read_faults, () => engine.get(id, range, at))
      if (data?.length === 0) return { meta, bytes: Stream.empty }
      if (data) return { meta, bytes: Stream.succeed(data) }
      const bytes = Stream.suspend(() =>
        Stream.fromAsyncIterable(windows(), expecting(read_faults)),
      )
      return { meta, bytes }
    })

/** BlobStore over an engine that is open. */
export const storeOf = (engine: BlobEngine) =>
  BlobStore.of({
    put: putInto(engine),
    get: getFrom(engine),
    stat: (id, scope) => ask(stat_faults, () => engine.stat(id, scope)),
    delete: (id, origin, scope) =>
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeNanos
        yield* ask(write_faults, () => engine.delete(id, origin, at, scope))
        return true as const
      }),
    tombstone: (id) => ask(index_faults, () => engine.tombstone(id)),
    list: ({ after_id = "", prefix = "", limit, scope }) =>
      ask(list_faults, () => engine.list(after_id, prefix, Math.min(limit, list_limit_max), scope)),
    usage: ask(index_faults, engine.usage),
    scan: (after_cursor, limit) =>
      ask(index_faults, () => engine.scan(after_cursor, Math.min(limit, scan_limit_max))),
    acknowledge: (cursor) => ask(write_faults, () => engine.acknowledge(cursor)),
  })

/** Compaction by hand (`VolumeEngine.reclaim`). */
export const reclaimOf = (engine: VolumeEngine, wait_ms: number) =>
  ask(["BlobStoreReadOnly", "BlobStoreFailed"], () => engine.reclaim(wait_ms))

const unopened = (cause: unknown) => {
  const fault = faultOf(cause)
  const detail = "detail" in fault ? fault.detail : fault._tag
  return new BlobStoreFailed({ detail: `The blob store cannot open: ${detail}` })
}

/** Opens the volume in the folder for as long as the scope lasts; nobody else may then. */
export const openBlobVolume = Effect.fnUntraced(function* (options: BlobVolumeOptions) {
  const dir = volumeFolder(options.dir)
  yield* holdFolder(dir)
  const free_floor_bytes = yield* floorOf(dir, options.free_floor_bytes ?? 0).pipe(
    Effect.mapError(({ message }) => new BlobStoreFailed({ detail: message })),
  )
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const open = Effect.tryPromise({
    try: () =>
      openVolume({
        dir,
        capacity_bytes: options.capacity_bytes,
        free_floor_bytes,
        size_max_bytes: options.size_max_bytes ?? blob_bytes_max,
        segment_bytes: options.segment_bytes ?? segment_bytes_default,
        scrub_bytes_per_second: options.scrub_bytes_per_second ?? 0,
        goes_on_after: options.goes_on_after ?? 0,
        report: (problem) => void run(Effect.logWarning(`The volume in ${dir}: ${problem}`)),
      }),
    catch: unopened,
  })
  return yield* Effect.acquireRelease(open, (engine) => Effect.promise(engine.shut))
})

/** BlobStore over a volume, and its engine for the hot routes. */
export const blobVolume = (options: BlobVolumeOptions) =>
  Layer.effectContext(
    Effect.map(openBlobVolume(options), (engine) =>
      Context.make(BlobStore, storeOf(engine)).pipe(Context.add(HotEngine, engine)),
    ),
  )
