/**
 * A NodeEngine in memory, without timers or a clock of its own, so that a simulator can run many.
 *
 * Source: document 1 §1, §4 BlobService; docs/decisions/0121-copies-of-a-cluster.md.
 */
import { Blake3Hasher, blake3 } from "@napi-rs/blake-hash"
import type { BlobRange, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { type BlobFault, faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type {
  Copy,
  CopyPage,
  CopyReading,
  IncomingCopy,
  NodeEngine,
  ReceiveResult,
  StagedBytes,
  Staging,
} from "#actors/blob-storage/ports/node-engine.ts"
import {
  type BlobId,
  blob_bytes_max,
  blob_id_bytes,
  get_chunk_bytes_max as window_bytes,
} from "#schemas/blob-storage/blob.ts"
import { orderFault } from "#volume"
import {
  deletionOf,
  type Identified,
  type MemoryCopy,
  type MemoryImage,
  type MemoryState,
  makeMemoryState,
} from "./state.ts"

export interface MemoryEngineOptions {
  /** Default: 1 TiB. */
  readonly capacity_bytes?: number
  /** Maximum blob size; default: 5 TiB. */
  readonly size_max_bytes?: number
  /**
   * Unix nanoseconds, for operations that are not given a time; by default the clock does not
   * advance.
   */
  readonly clock?: () => bigint
  /** The initial contents, from `image` of another engine. */
  readonly image?: MemoryImage
}

/** The engine, with faults that tests inject. */
export interface MemoryEngine extends NodeEngine {
  /** Corrupts a byte of a copy, so that a read of it fails. False if no copy has that byte. */
  readonly corrupt: (id: BlobId, offset?: number) => boolean
  /** Aborts everything in progress like a killed process. Stored copies stay. */
  readonly crash: () => void
  /** Changes the capacity. Stored copies stay. */
  readonly limit: (capacity_bytes: number) => void
  /** The current contents, for a new engine: a replaced or an old disk. */
  readonly image: () => MemoryImage
}

const tib = 1024 ** 4

const failed = (detail: string) => faultError({ _tag: "BlobStoreFailed", detail })

const identify = (hash: string): Identified => {
  // The brand stands for the first half of a BLAKE3 digest in hex.
  return { id: hash.slice(0, 2 * blob_id_bytes) as BlobId, hash }
}

/** Reserves capacity for bytes in transit, and detects crashes in between. */
const makeRoom = (state: MemoryState, options: MemoryEngineOptions) => {
  let capacity_bytes = options.capacity_bytes ?? tib
  let reserved_bytes = 0
  let generation = 0
  const fault = (bytes: number): BlobFault | undefined => {
    if (state.counts().used_bytes + reserved_bytes + bytes <= capacity_bytes) return undefined
    return {
      _tag: "BlobCapacityExceeded",
      detail: `The store has a maximum of ${capacity_bytes} bytes.`,
    }
  }
  const begin = () => {
    const own_generation = generation
    let reservation = 0
    const release = () => {
      if (own_generation === generation) reserved_bytes -= reservation
      reservation = 0
    }
    return {
      take: (bytes: number) => {
        if (own_generation !== generation) throw failed("The process has ended.")
        const exceeded = fault(bytes)
        if (exceeded) throw faultError(exceeded)
        reserved_bytes += bytes
        reservation += bytes
      },
      release,
    }
  }
  return {
    begin,
    capacity: () => capacity_bytes,
    limit: (bytes: number) => {
      capacity_bytes = bytes
    },
    crash: () => {
      generation += 1
      reserved_bytes = 0
    },
  }
}
type Room = ReturnType<typeof makeRoom>

/**
 * Collects parts until the bytes are taken, once and only if nothing failed. Content that may
 * already exist is only hashed when there is no space; `full` has the reason.
 */
const makeIntake = (
  room: Room,
  bytes_max: number,
  tooLong: () => BlobFault,
  mayRepeat: () => boolean = () => false,
) => {
  const reservation = room.begin()
  const parts: Array<Uint8Array> = []
  let size = 0
  let failure: unknown
  let full: { readonly cause: unknown; readonly hasher: Blake3Hasher } | undefined
  const append = (part: Uint8Array) => {
    if (full) return void full.hasher.update(part)
    parts.push(part)
    try {
      reservation.take(part.length)
    } catch (cause) {
      if (faultOf(cause)._tag !== "BlobCapacityExceeded" || !mayRepeat()) throw cause
      full = { cause, hasher: new Blake3Hasher() }
      for (const one of parts.splice(0)) full.hasher.update(one)
      reservation.release()
    }
  }
  const end = () => {
    failure ??= failed("The upload has ended.")
    parts.length = 0
    reservation.release()
  }
  return {
    write: (part: Uint8Array): undefined => {
      if (failure !== undefined) throw failure
      try {
        if (size + part.length > bytes_max) throw faultError(tooLong())
        append(part)
      } catch (cause) {
        failure = cause
        throw cause
      }
      size += part.length
    },
    /** The content; `whole` throws if there was no space for it. */
    bytes: () => {
      if (failure !== undefined) throw failure
      // A process that has ended stores nothing.
      reservation.take(0)
      if (full) {
        const { cause, hasher } = full
        const whole = (): never => {
          throw cause
        }
        return { identified: identify(hasher.digest("hex")), whole, size, no_room: { cause } }
      }
      const bytes = new Uint8Array(Buffer.concat(parts))
      return { identified: identify(blake3(bytes).toString("hex")), whole: () => bytes, size }
    },
    end,
  }
}

type Intake = ReturnType<typeof makeIntake>

async function* windowsOf(bytes: Uint8Array, start: number, end: number) {
  for (let at = start; at < end; at += window_bytes) {
    yield bytes.subarray(at, Math.min(end, at + window_bytes))
  }
}

const corrupt = (id: BlobId) =>
  faultError({ _tag: "BlobCorrupt", id, detail: "The bytes do not match their checksums." })

const makeReads = (state: MemoryState) => {
  const find = (id: BlobId) => {
    const one = state.held.get(id)
    if (!one) throw faultError({ _tag: "BlobNotFound", id })
    return one
  }
  /** Quarantines a copy if this range includes the corrupt byte. */
  const verify = (one: MemoryCopy, start: number, end: number, at: bigint) => {
    const now = state.held.get(one.copy.id)
    const corrupt_at = now?.bytes === one.bytes ? now.corrupt_at : undefined
    const is_affected =
      corrupt_at !== undefined &&
      corrupt_at >= start &&
      (corrupt_at < end || one.bytes.length === 0)
    if (!now || !is_affected) return
    state.quarantine(now, at)
    throw corrupt(one.copy.id)
  }
  async function* verified(one: MemoryCopy, [start, end]: readonly [number, number], at: bigint) {
    let from = start
    for await (const window of windowsOf(one.bytes, start, end)) {
      if (from > start) verify(one, from, from + window.length, at)
      from += window.length
      yield window
    }
  }
  const read = (one: MemoryCopy, { offset = 0, length }: BlobRange, at: bigint): CopyReading => {
    const { copy, meta, bytes } = one
    const start = Math.min(Math.max(offset, 0), bytes.length)
    const end = Math.min(start + Math.max(length ?? bytes.length, 0), bytes.length)
    verify(one, start, Math.min(end, start + window_bytes), at)
    const data = end - start <= window_bytes ? bytes.subarray(start, end) : undefined
    return { copy, meta, data, windows: () => verified(one, [start, end], at) }
  }
  return {
    read: async (id: BlobId, range: BlobRange, at: bigint) => read(find(id), range, at),
    get: async (id: BlobId, range: BlobRange, at: bigint) => {
      const one = find(id)
      if (one.copy.shard) throw faultError({ _tag: "BlobNotFound", id })
      const { meta, data, windows } = read(one, range, at)
      return { meta, data, windows }
    },
    stat: async (id: BlobId) => find(id).meta,
  }
}

const sealing = (intake: Intake) => async (): Promise<StagedBytes> => {
  const { identified, whole, size, no_room } = intake.bytes()
  const { id, hash } = identified
  if (no_room) return { id, checksum: hash, size, windows: whole, no_room }
  const bytes = whole()
  return { id, checksum: hash, size, windows: () => windowsOf(bytes, 0, size) }
}

const makeWrites = (state: MemoryState, room: Room, size_max_bytes: number) => {
  const tooLarge = (): BlobFault => ({ _tag: "BlobTooLarge", bytes_max: size_max_bytes })
  const upload: NodeEngine["upload"] = (order, size) => {
    const announced = size ?? size_max_bytes
    const tooLong = (): BlobFault =>
      announced >= size_max_bytes
        ? tooLarge()
        : {
            _tag: "BlobStoreFailed",
            detail: `The put has more than the ${announced} bytes that were announced.`,
          }
    const { expected_id } = order
    const mayRepeat = () => expected_id === undefined || state.held.has(expected_id)
    const bytes_max = Math.min(announced, size_max_bytes)
    const intake = makeIntake(room, bytes_max, tooLong, mayRepeat)
    return {
      // Throws synchronously, as the port allows.
      write: intake.write,
      seal: sealing(intake),
      finish: async (at): Promise<PutResult> => {
        try {
          const { identified, whole } = intake.bytes()
          return state.put(order, identified, whole, at)
        } finally {
          intake.end()
        }
      },
      abort: async () => intake.end(),
    }
  }
  const stage: NodeEngine["stage"] = (size): Staging => {
    const bytes_max = Math.min(size ?? size_max_bytes, size_max_bytes)
    const intake = makeIntake(room, bytes_max, tooLarge, () => state.held.size > 0)
    return { write: intake.write, seal: sealing(intake), abort: async () => intake.end() }
  }
  const put: NodeEngine["put"] = async (order, parts, at, onPlaced) => {
    const one = upload(order, undefined)
    try {
      for (const part of parts) void one.write(part.slice())
      const answer = await one.finish(at)
      if (answer.created) onPlaced?.(answer)
      return answer
    } finally {
      await one.abort()
    }
  }
  return { put, upload, stage }
}

const makeReceive =
  (state: MemoryState, room: Room): NodeEngine["receive"] =>
  (order, announced): IncomingCopy => {
    const fault = orderFault(order, announced)
    const tooLong = (): BlobFault => ({
      _tag: "BlobStoreFailed",
      detail: `The copy has more than the ${announced} bytes that were announced.`,
    })
    const intake = makeIntake(room, announced, tooLong)
    const finish = (at: bigint): ReceiveResult => {
      if (fault) throw faultError(fault)
      const { identified, whole } = intake.bytes()
      const bytes = whole()
      if (bytes.length < announced) throw failed("The copy is incomplete.")
      const { id, hash } = identified
      if (!order.shard && hash !== order.checksum) {
        throw faultError({ _tag: "BlobIdMismatch", expected: order.id, actual: id })
      }
      return state.receive(order, bytes, at)
    }
    return {
      write: (bytes) => {
        if (fault) throw faultError(fault)
        return intake.write(bytes)
      },
      finish: async (at) => {
        try {
          return finish(at)
        } finally {
          intake.end()
        }
      },
      abort: async () => intake.end(),
    }
  }

/** Lists the copies in the order of their ids. */
const makeListing = ({ held, deletions }: MemoryState) => {
  const copyOf = (id: BlobId): Copy | undefined => {
    const deletion = deletions.get(id)
    return held.get(id)?.copy ?? (deletion && deletionOf(id, deletion))
  }
  return {
    copiesOf: async (ids: ReadonlyArray<BlobId>) => ids.map(copyOf),
    copies: async (after_id: string, until_id: string, limit: number): Promise<CopyPage> => {
      const ids = [...held.keys(), ...deletions.keys()]
        .filter((id) => id > after_id && (until_id === "" || id < until_id))
        .sort()
      const page = ids.slice(0, limit)
      const copies = page.flatMap((id) => copyOf(id) ?? [])
      return { copies, next: ids.length > page.length ? page.at(-1) : undefined }
    },
    list: async (after_id: string, prefix: string, limit: number) => {
      const ids = Array.from(held.keys())
        .filter((id) => id > after_id && id.startsWith(prefix))
        .sort()
      return { ids: ids.slice(0, limit), has_more: ids.length > limit }
    },
  }
}

/** Creates a store in memory, empty or from an image. */
export const memoryEngine = (options: MemoryEngineOptions = {}): MemoryEngine => {
  const { clock = () => 0n, size_max_bytes = blob_bytes_max } = options
  const state = makeMemoryState(options.image)
  const room = makeRoom(state, options)
  return {
    ...makeReads(state),
    ...makeWrites(state, room, size_max_bytes),
    receive: makeReceive(state, room),
    renew: async (id, put_at, at) => state.renew(id, put_at, at),
    ...makeListing(state),
    delete: async (id, origin, at) => state.remove(id, origin, at),
    deleteClusterWide: async (id, origin, deleted_at) =>
      state.removeClusterWide(id, origin, deleted_at, clock()),
    release: async (id, stored_at, at) => state.release(id, stored_at, at),
    tombstone: async (id) => state.deletions.get(id)?.deleted_at,
    usage: async () => ({
      ...state.counts(),
      payload_bytes: state.counts().used_bytes,
      capacity_bytes: room.capacity(),
      read_only: false,
    }),
    scan: async (after_cursor, limit) =>
      state
        .journal()
        .filter(({ cursor }) => cursor > after_cursor)
        .slice(0, limit),
    acknowledge: async (cursor) => state.forget(cursor),
    close: async () => undefined,
    corrupt: (id, offset = 0) => state.corrupt(id, offset),
    crash: room.crash,
    limit: room.limit,
    image: state.image,
  }
}
