/**
 * Puts that come piece by piece, and puts of large blobs. What stays small is held in memory and
 * put at once; what grows large moves to extents while it arrives.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { BlobUpload, PutAnswer, PutOrder } from "#actors/blob-storage/blob-engine.ts"
import { thrown } from "#actors/blob-storage/blob-fault.ts"
import { type BlobId, blob_id_bytes, storedPolicy } from "#schemas/blob-storage/blob.ts"
import { admission, refusalOf } from "./volume-decide.ts"
import type { ExtentFiles } from "./volume-extents.ts"
import { makeFifo } from "./volume-fifo.ts"
import type { PutOperation, VolumeParts } from "./volume-parts.ts"
import { metaOf } from "./volume-record.ts"
import { type BlobStream, makeBlobStream } from "./volume-stream.ts"

/** Bytes that are hashed before others have their turn: a quarter of a millisecond. */
const slice_bytes = 1024 * 1024

export type UploadParts = Pick<VolumeParts, "limits" | "line" | "log" | "index" | "budget">

/** A put of bytes that are all there. */
export type Put = (
  order: PutOrder,
  parts: ReadonlyArray<Uint8Array>,
  at: bigint,
) => Promise<PutAnswer>

export interface Uploads {
  readonly upload: (order: PutOrder, size: number | undefined) => BlobUpload
  /** A put of `limits.inline_bytes_max` bytes or more. */
  readonly putLarge: Put
}

/** The capacity that one upload has for itself until its blob is counted. */
const makeShare = ({ limits, budget }: UploadParts, announced: number | undefined) => {
  let reserved_bytes = 0
  const grow = (bytes: number) => {
    if (bytes > limits.size_max_bytes) {
      throw thrown({ _tag: "BlobTooLarge", bytes_max: limits.size_max_bytes })
    }
    if (announced !== undefined && bytes > announced) {
      const detail = `The put has more than the ${announced} bytes that were announced.`
      throw thrown({ _tag: "BlobStoreFailed", detail })
    }
    if (bytes <= reserved_bytes) return
    budget.reserve(bytes - reserved_bytes)
    reserved_bytes = bytes
  }
  const giveBack = () => {
    budget.release(reserved_bytes)
    reserved_bytes = 0
  }
  return { grow, giveBack }
}

/** What is known of the bytes once they are all there. */
const identified = (hasher: Blake3Hasher) => {
  const hash = hasher.digest("hex")
  // The first half of a BLAKE3 digest in hex is what the brand says.
  const id = hash.slice(0, 2 * blob_id_bytes) as BlobId
  return { id, hash, checksum: Buffer.from(hash, "hex").toString("base64") }
}

/** Answers what needs no storing, a repetition; throws the refusal. */
const settle = async ({ index, log }: UploadParts, put: PutOperation) => {
  const place = index.find(put.id)
  const head = place?.kind === "blob" ? await log.head(put.id, place) : undefined
  const refused = refusalOf(put.id, admission(put, head))
  if (refused) throw thrown(refused)
  return head && { id: put.id, meta: metaOf(head), created: false }
}

const commit = async (
  parts: UploadParts,
  put: PutOperation,
  stream: BlobStream,
): Promise<PutAnswer> => {
  const settled = await settle(parts, put)
  if (settled) return settled
  await stream.sync()
  const { head, is_done, at } = await parts.line.submit(put)
  if (head) return { id: put.id, meta: metaOf(head), created: false }
  if (!is_done) throw new Error("a put was neither stored nor there")
  const { id, checksum, labels } = put
  const times = { created_at: at, modified_at: at }
  const meta = { size: BigInt(put.size), ...times, checksum, labels }
  return { id, meta: { ...meta, policy: storedPolicy(put.policy) }, created: true }
}

/** The stream that a blob moves to when it is large, with the hash of its bytes. */
interface Large {
  readonly stream: BlobStream
  readonly hasher: Blake3Hasher
}

const turnOfOthers = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Takes an upload's bytes: held while they are few, else on their way to extents. */
const makeIntake = (parts: UploadParts, extents: ExtentFiles, announced: number | undefined) => {
  const { limits, line } = parts
  const share = makeShare(parts, announced)
  const held = makeFifo()
  let large: Large | undefined
  let size = 0

  const feed = ({ stream, hasher }: Large, bytes: Uint8Array) => {
    hasher.update(bytes)
    stream.push(bytes)
  }
  const begin = () => {
    line.assertWritable()
    const begun = { stream: makeBlobStream(line, extents, announced), hasher: new Blake3Hasher() }
    for (const part of held.take(held.bytes())) feed(begun, part)
    return begun
  }
  const take = (bytes: Uint8Array) => {
    share.grow(Math.max(size + bytes.length, announced ?? 0))
    size += bytes.length
    if (large) return feed(large, bytes)
    held.push(bytes)
    if (size >= limits.inline_bytes_max) large = begin()
  }
  return { take, share, held, large: () => large, size: () => size }
}
type Intake = ReturnType<typeof makeIntake>

const putOf = (order: PutOrder, size: number, at: bigint) => ({
  ...order,
  kind: "put" as const,
  ...{ size, at, parts: [], crcs: [] },
})

const finishOf =
  (parts: UploadParts, order: PutOrder, intake: Intake, putSmall: Put) =>
  async (at: bigint): Promise<PutAnswer> => {
    const large = intake.large()
    if (!large) {
      // From here on the put itself asks for the room.
      intake.share.giveBack()
      return putSmall(order, intake.held.take(intake.held.bytes()), at)
    }
    const placed = await large.stream.complete()
    const put = { ...putOf(order, intake.size(), at), ...identified(large.hasher) }
    return commit(parts, { ...put, extents: placed }, large.stream)
  }

/** Takes parts one behind the other, a large one in slices, and remembers what went wrong. */
const makeTurns = (intake: Intake) => {
  /** What takes a large part; the parts behind it wait. */
  let turn: Promise<void> | undefined
  let broken: unknown

  const assertWhole = () => {
    if (broken !== undefined) throw broken
  }
  const take = (bytes: Uint8Array) => {
    assertWhole()
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
      await intake.large()?.stream.pressure()
      await turnOfOthers()
    }
  }
  const write = (bytes: Uint8Array): Promise<void> | undefined => {
    if (turn || bytes.length > slice_bytes) {
      const mine = takeSlices(bytes, turn).finally(() => {
        if (turn === mine) turn = undefined
      })
      // `finish` tells of it too, should nobody wait for this one.
      mine.catch(() => undefined)
      turn = mine
      return mine
    }
    try {
      take(bytes)
    } catch (cause) {
      return Promise.reject(cause)
    }
    return intake.large()?.stream.pressure()
  }
  return {
    write,
    /** Resolves when all parts were taken; throws what went wrong with one. */
    taken: async () => {
      await turn
      assertWhole()
    },
    end: async () => {
      broken ??= new Error("the upload has ended")
      await turn?.catch(() => undefined)
    },
  }
}

const beginUpload = (
  parts: UploadParts,
  extents: ExtentFiles,
  putSmall: Put,
  order: PutOrder,
  announced: number | undefined,
): BlobUpload => {
  const intake = makeIntake(parts, extents, announced)
  const turns = makeTurns(intake)
  const finishNow = finishOf(parts, order, intake, putSmall)
  let ending: Promise<void> | undefined
  let finishing: Promise<PutAnswer> | undefined

  const end = async () => {
    await turns.end()
    await finishing?.catch(() => undefined)
    await intake.large()?.stream.abandon()
    intake.share.giveBack()
  }
  const abort = () => {
    ending ??= end()
    return ending
  }
  const finishAll = async (at: bigint) => {
    await turns.taken()
    return finishNow(at)
  }
  const finish = async (at: bigint) => {
    finishing ??= finishAll(at)
    try {
      return await finishing
    } finally {
      await abort()
    }
  }
  return { write: turns.write, finish, abort }
}

/** The volume's uploads; `putSmall` puts what is below `limits.inline_bytes_max`. */
export const makeUploads = (parts: UploadParts, extents: ExtentFiles, putSmall: Put): Uploads => {
  const upload = (order: PutOrder, size: number | undefined) =>
    beginUpload(parts, extents, putSmall, order, size)
  const putLarge: Put = async (order, bytes, at) => {
    const size = bytes.reduce((sum, { length }) => sum + length, 0)
    const one = upload(order, size)
    try {
      for (const part of bytes) await one.write(part)
      return await one.finish(at)
    } finally {
      await one.abort()
    }
  }
  return { upload, putLarge }
}
