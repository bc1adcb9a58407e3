/**
 * Receives content piece by piece: buffers it while it is small, streams it to extents once it is
 * large, and only hashes it if there is no space for content that may be stored already. The caller
 * decides what becomes of it.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import { type BlobId, blob_id_bytes } from "#schemas/blob-storage/blob.ts"
import { makeByteQueue } from "../extents/byte-queue.ts"
import { diskBytes, type ExtentFiles } from "../extents/files.ts"
import type { VolumeParts } from "../parts.ts"
import { type BlobStream, makeBlobStream } from "./stream.ts"

/** Bytes hashed before yielding to the event loop: a quarter of a millisecond. */
const slice_bytes = 1024 * 1024

export type IntakeParts = Pick<VolumeParts, "limits" | "commits" | "budget">

/** The capacity reserved for one upload until its blob is counted. */
const makeReservation = ({ limits, budget }: IntakeParts, announced: number | undefined) => {
  let reserved_bytes = 0
  let disk_bytes = 0
  let written_bytes = 0
  const assertAllowed = (bytes: number) => {
    if (bytes > limits.size_max_bytes) {
      throw faultError({ _tag: "BlobTooLarge", bytes_max: limits.size_max_bytes })
    }
    if (announced !== undefined && bytes > announced) {
      const detail = `The put has more than the ${announced} bytes that were announced.`
      throw faultError({ _tag: "BlobStoreFailed", detail })
    }
  }
  const grow = (bytes: number) => {
    // The disk may have filled up since the reservation.
    if (bytes <= reserved_bytes) return budget.assertSpace()
    const wanted = diskBytes(bytes, limits.segment_bytes)
    budget.reserve(bytes - reserved_bytes, wanted - disk_bytes)
    reserved_bytes = bytes
    disk_bytes = wanted
  }
  const noteWritten = (bytes: number) => {
    const of_share = Math.min(bytes, disk_bytes - written_bytes)
    written_bytes += of_share
    budget.noteWritten(of_share)
  }
  const release = () => {
    budget.release(reserved_bytes, disk_bytes - written_bytes)
    reserved_bytes = 0
    disk_bytes = 0
    written_bytes = 0
  }
  return { assertAllowed, grow, noteWritten, release }
}

/** The id and hashes of complete content. */
export const identified = (hasher: Blake3Hasher) => {
  const hash = hasher.digest("hex")
  // The first half of a BLAKE3 digest in hex is a BlobId.
  const id = hash.slice(0, 2 * blob_id_bytes) as BlobId
  return { id, hash, checksum: Buffer.from(hash, "hex").toString("base64") }
}

/** Hashes content that is small enough to be in memory. */
export const hashed = (parts: ReadonlyArray<Uint8Array>) => {
  const hasher = new Blake3Hasher()
  for (const part of parts) hasher.update(part)
  return hasher
}

/** The stream of a large blob, with the hash of its content. */
interface Large {
  readonly stream: BlobStream
  readonly hasher: Blake3Hasher
}

/** Content that exceeds the capacity: it is hashed, but not kept. */
interface Surplus {
  readonly hasher: Blake3Hasher
  /** Why there is no space. */
  readonly cause: unknown
}

/** How content is received. */
export interface IntakeRules {
  /** Maximum number of bytes. */
  readonly announced: number | undefined
  /** False: the hash is not needed. */
  readonly is_hashed?: boolean
  /**
   * Called when there is no space: whether content of at least this many bytes may be stored
   * already. Without it, such content is refused.
   */
  readonly mayBeDuplicate?: (bytes: number) => boolean
}

const yieldToEventLoop = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * Whether content of at least this many bytes may be stored already. No whole blob is larger than
 * all that is stored; a blob with a shard here may be.
 */
export const mayBeStored = (
  { index, budget }: Pick<VolumeParts, "index" | "budget">,
  bytes: number,
) => bytes <= budget.stored() || index.count().shards > 0

const isCapacityFault = (cause: unknown) => faultOf(cause)._tag === "BlobCapacityExceeded"

/**
 * Receives an upload's bytes: buffers them while they are few, then streams them to extents. Hashes
 * them unless `is_hashed` is false. `large` and `surplus` say which applies.
 */
const makeIntake = (
  parts: IntakeParts,
  extents: ExtentFiles,
  { announced, is_hashed = true, mayBeDuplicate = () => false }: IntakeRules,
) => {
  const { limits, commits } = parts
  const reservation = makeReservation(parts, announced)
  const buffered = makeByteQueue()
  let large: Large | undefined
  let surplus: Surplus | undefined
  let size = 0

  const begin = () => {
    commits.assertWritable()
    const hasher = new Blake3Hasher()
    const hash = is_hashed ? hasher : undefined
    const stream = makeBlobStream(commits, extents, {
      announced,
      hash,
      noteWritten: reservation.noteWritten,
    })
    for (const part of buffered.take(buffered.bytes())) stream.push(part)
    return { stream, hasher }
  }
  /** Releases the reservations. Idempotent. */
  const end = async () => {
    await large?.stream.abandon()
    reservation.release()
  }
  /** From here on bytes are only hashed, and earlier ones are dropped. */
  const stopKeeping = (cause: unknown): Surplus => {
    large?.stream.hashAll()
    const hasher = large?.hasher ?? new Blake3Hasher()
    for (const part of buffered.take(buffered.bytes())) hasher.update(part)
    // The caller that ends the intake gets the error.
    end().catch(() => undefined)
    return { hasher, cause }
  }
  const reserve = (bytes: number) => {
    try {
      if (surplus) throw surplus.cause
      reservation.grow(Math.max(bytes, announced ?? 0))
    } catch (cause) {
      if (!isCapacityFault(cause) || !mayBeDuplicate(bytes)) throw cause
      surplus ??= stopKeeping(cause)
    }
  }
  const take = (bytes: Uint8Array) => {
    const received = size + bytes.length
    reservation.assertAllowed(Math.max(received, announced ?? 0))
    reserve(received)
    size = received
    if (surplus) return void surplus.hasher.update(bytes)
    if (large) return large.stream.push(bytes)
    buffered.push(bytes)
    if (size >= limits.inline_bytes_max) large = begin()
  }
  return {
    take,
    end,
    buffered,
    release: reservation.release,
    large: () => large,
    surplus: () => surplus,
    size: () => size,
  }
}
export type Intake = ReturnType<typeof makeIntake>

/** The promise that the next write should wait for, if any. */
const pressureOf = (intake: Intake) =>
  intake.surplus() ? undefined : intake.large()?.stream.pressure()

/** Receives parts in order, large ones in slices, and remembers the first error. */
const makeReceiver = (intake: Intake) => {
  /** Receives a large part. Later parts wait for it. */
  let turn: Promise<void> | undefined
  let broken: unknown

  const throwIfBroken = () => {
    if (broken !== undefined) throw broken
  }
  const take = (bytes: Uint8Array) => {
    throwIfBroken()
    try {
      intake.take(bytes)
    } catch (cause) {
      broken = cause
      throw cause
    }
  }
  const takeSlices = async (bytes: Uint8Array, before: Promise<void> | undefined) => {
    await before
    for (let at = 0; at < bytes.length; at += slice_bytes) {
      take(bytes.subarray(at, at + slice_bytes))
      await pressureOf(intake)
      await yieldToEventLoop()
    }
  }
  const write = (bytes: Uint8Array): Promise<void> | undefined => {
    if (turn || bytes.length > slice_bytes) {
      const mine = takeSlices(bytes, turn).finally(() => {
        if (turn === mine) turn = undefined
      })
      // `finish` rejects with it too, if this promise is not awaited.
      mine.catch(() => undefined)
      turn = mine
      return mine
    }
    try {
      take(bytes)
    } catch (cause) {
      return Promise.reject(cause)
    }
    return pressureOf(intake)
  }
  return {
    write,
    /** Resolves once all parts were received. Throws the first error. */
    received: async () => {
      await turn
      throwIfBroken()
    },
    end: async () => {
      broken ??= new Error("the upload has ended")
      await turn?.catch(() => undefined)
    },
  }
}

/**
 * An upload in progress. `work` runs a step once all bytes were received. `abort` must always be
 * called: it waits for that step, and releases extents that no record refers to.
 */
export const makeSession = (parts: IntakeParts, extents: ExtentFiles, rules: IntakeRules) => {
  const intake = makeIntake(parts, extents, rules)
  const receiver = makeReceiver(intake)
  let step_in_progress: Promise<unknown> | undefined
  let ending: Promise<void> | undefined

  const end = async () => {
    await receiver.end()
    await step_in_progress?.catch(() => undefined)
    await intake.end()
  }
  const step = async <A>(next: () => Promise<A>) => {
    await receiver.received()
    return next()
  }
  return {
    intake,
    write: receiver.write,
    work: <A>(next: () => Promise<A>): Promise<A> => {
      const mine = step(next)
      step_in_progress = mine
      return mine
    },
    abort: () => {
      ending ??= end()
      return ending
    },
  }
}
export type Session = ReturnType<typeof makeSession>
