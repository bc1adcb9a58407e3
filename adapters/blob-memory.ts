/**
 * BlobStore in memory: the promises of the port without a disk, for tests and for trying things
 * out.
 */
import { blake3 } from "@napi-rs/blake-hash"
import { Clock, Effect, Layer, Stream } from "effect"
import { admit, type BlobOrigin } from "#actors/blob-storage/blob-admission.ts"
import {
  BlobAlreadyExists,
  BlobCapacityExceeded,
  type BlobFact,
  BlobIdMismatch,
  BlobNotFound,
  type BlobPut,
  type BlobPutError,
  type BlobRange,
  BlobStore,
  BlobTooLarge,
  type StoredBlob,
  scan_limit_max,
} from "#actors/blob-storage/blob-store.ts"
import {
  type BlobId,
  type BlobMeta,
  blob_bytes_max,
  get_chunk_bytes_max,
  list_limit_max,
  storedPolicy,
} from "#schemas/blob-storage/blob.ts"

export interface BlobMemoryOptions {
  readonly capacity_bytes: number
  /** The largest blob; 5 TiB unless given. */
  readonly size_max_bytes?: number
}

interface HeldBlob {
  readonly meta: BlobMeta
  readonly bytes: Uint8Array
}

const id_characters = 32

const no_facts: ReadonlyArray<BlobFact> = []

const makeState = () => ({
  blobs: new Map<BlobId, HeldBlob>(),
  tombstones: new Map<BlobId, bigint>(),
  journal: no_facts,
  cursor: 0,
  last_at: 0n,
  used_bytes: 0,
  /** Bytes of puts that are still on their way. */
  reserved_bytes: 0,
})
type State = ReturnType<typeof makeState>

const stamp = (state: State, at: bigint) => {
  state.last_at = at > state.last_at ? at : state.last_at + 1n
  return state.last_at
}

const record = (
  state: State,
  kind: "stored" | "deleted",
  id: BlobId,
  { meta, at, origin }: { meta: BlobMeta; at: bigint; origin: BlobOrigin },
) => {
  state.cursor += 1
  const { checksum, policy, labels } = meta
  const { actor, request_id, correlation_id } = origin
  const fact: BlobFact = {
    ...{ cursor: state.cursor, kind, id, size: Number(meta.size), checksum, policy, at },
    ...{ actor, request_id, correlation_id },
    ...(kind === "stored" ? { labels } : {}),
  }
  state.journal = [...state.journal, fact]
}

const identify = (bytes: Uint8Array) => {
  const digest = blake3(bytes)
  // The first half of a BLAKE3 digest in hex is what the brand says.
  const id = digest.toString("hex").slice(0, id_characters) as BlobId
  return { id, checksum: digest.toString("base64") }
}

/** Stores complete bytes: one step, so that nothing is ever half there. */
const keep = (
  state: State,
  put: BlobPut,
  bytes: Uint8Array,
  now: bigint,
): Effect.Effect<StoredBlob, BlobAlreadyExists | BlobIdMismatch> => {
  const { id, checksum } = identify(bytes)
  const { policy, labels, origin, expected_id, if_none_match = false } = put
  const present = state.blobs.get(id)
  const admission = admit({ id, checksum, policy, expected_id, if_none_match }, present?.meta)
  if (admission.verdict === "mismatch") {
    return Effect.fail(new BlobIdMismatch({ expected: admission.expected, actual: id }))
  }
  if (admission.verdict === "exists") {
    return Effect.fail(new BlobAlreadyExists({ id, detail: admission.detail }))
  }
  if (present) {
    return Effect.succeed({ id, size: present.meta.size, meta: present.meta, created: false })
  }
  const at = stamp(state, now)
  const size = BigInt(bytes.length)
  const times = { created_at: at, modified_at: at }
  const meta = { size, ...times, checksum, labels, policy: storedPolicy(policy) }
  state.blobs.set(id, { meta, bytes })
  state.tombstones.delete(id)
  state.used_bytes += bytes.length
  record(state, "stored", id, { meta, at, origin })
  return Effect.succeed({ id, size, meta, created: true })
}

const makePut = (state: State, { capacity_bytes, size_max_bytes }: Required<BlobMemoryOptions>) => {
  const admitPart = (held: number, part: Uint8Array): Effect.Effect<void, BlobPutError> => {
    if (held + part.length > size_max_bytes) {
      return Effect.fail(new BlobTooLarge({ bytes_max: size_max_bytes }))
    }
    if (state.used_bytes + state.reserved_bytes + part.length > capacity_bytes) {
      const detail = `The store holds at most ${capacity_bytes} bytes.`
      return Effect.fail(new BlobCapacityExceeded({ detail }))
    }
    return Effect.void
  }
  return <E, R>(put: BlobPut, bytes: Stream.Stream<Uint8Array, E, R>) =>
    Effect.suspend(() => {
      const parts: Array<Uint8Array> = []
      let held = 0
      const take = (part: Uint8Array) =>
        Effect.map(admitPart(held, part), () => {
          held += part.length
          state.reserved_bytes += part.length
          parts.push(part.slice())
        })
      return Stream.runForEach(bytes, take).pipe(
        Effect.andThen(Clock.currentTimeNanos),
        Effect.flatMap((now) => keep(state, put, new Uint8Array(Buffer.concat(parts)), now)),
        Effect.ensuring(
          Effect.sync(() => {
            state.reserved_bytes -= held
          }),
        ),
      )
    })
}

const find = (state: State, id: BlobId) => {
  const held = state.blobs.get(id)
  return held ? Effect.succeed(held) : Effect.fail(new BlobNotFound({ id }))
}

const pieces = (bytes: Uint8Array) =>
  Array.from({ length: Math.ceil(bytes.length / get_chunk_bytes_max) }, (_, piece) =>
    bytes.slice(piece * get_chunk_bytes_max, (piece + 1) * get_chunk_bytes_max),
  )

const get = (state: State, id: BlobId, { offset = 0, length }: BlobRange = {}) =>
  Effect.map(find(state, id), ({ meta, bytes }) => {
    const start = Math.max(offset, 0)
    const end = start + Math.max(length ?? bytes.length, 0)
    return { meta, bytes: Stream.fromIterable(pieces(bytes.subarray(start, end))) }
  })

const remove = (state: State, id: BlobId, origin: BlobOrigin) =>
  Effect.map(Clock.currentTimeNanos, (now) => {
    const at = stamp(state, now)
    const held = state.blobs.get(id)
    state.tombstones.set(id, at)
    if (held) {
      state.blobs.delete(id)
      state.used_bytes -= held.bytes.length
      record(state, "deleted", id, { meta: held.meta, at, origin })
    }
    return true as const
  })

const makeStore = (options: Required<BlobMemoryOptions>) => {
  const state = makeState()
  return BlobStore.of({
    put: makePut(state, options),
    get: (id, range) => get(state, id, range),
    stat: (id) => Effect.map(find(state, id), ({ meta }) => meta),
    delete: (id, origin) => remove(state, id, origin),
    tombstone: (id) => Effect.sync(() => state.tombstones.get(id)),
    list: ({ after_id = "", prefix = "", limit }) =>
      Effect.sync(() => {
        const ids = Array.from(state.blobs.keys())
          .filter((id) => id > after_id && id.startsWith(prefix))
          .sort()
        const count = Math.min(limit, list_limit_max)
        return { ids: ids.slice(0, count), has_more: ids.length > count }
      }),
    usage: Effect.sync(() => ({
      used_bytes: state.used_bytes,
      blob_count: state.blobs.size,
      capacity_bytes: options.capacity_bytes,
      read_only: false,
      quarantined: 0,
    })),
    scan: (after_cursor, limit) =>
      Effect.sync(() =>
        state.journal
          .filter(({ cursor }) => cursor > after_cursor)
          .slice(0, Math.min(limit, scan_limit_max)),
      ),
    acknowledge: (cursor) =>
      Effect.sync(() => {
        state.journal = state.journal.filter((fact) => fact.cursor > cursor)
      }),
  })
}

/** BlobStore in memory, empty at first and gone at the end. */
export const blobMemory = ({ capacity_bytes, size_max_bytes }: BlobMemoryOptions) =>
  Layer.sync(BlobStore, () =>
    makeStore({ capacity_bytes, size_max_bytes: size_max_bytes ?? blob_bytes_max }),
  )
