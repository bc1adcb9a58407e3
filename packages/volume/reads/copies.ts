/**
 * A single copy of a blob: reads its record and its bytes, and verifies them. A copy that fails is
 * read again through a new file handle; if it fails again, it is quarantined before the error is
 * returned.
 */
import { join } from "node:path"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { codeOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Place } from "../blob-index/blob-index.ts"
import type { VolumeFile } from "../disk.ts"
import {
  checksumOf,
  decodeHead,
  heldBytesOf,
  isPayloadIntact,
  type RecordHead,
  shardOf,
} from "../log/record.ts"
import { segmentName } from "../log/segments.ts"
import type { ReadRecord, Segment, VolumeParts } from "../parts.ts"
import { corrupt, type Quarantine } from "../upkeep/quarantine.ts"
import { chunk_bytes, chunkCount } from "./chunks.ts"
import { damaged, damageOf } from "./damage.ts"
import { makePageCacheEstimate } from "./page-cache.ts"
import type { BlobSpan, FileOf } from "./windows.ts"

export type CopyParts = Pick<VolumeParts, "dir" | "disk" | "segments" | "index">

/** Thrown if a copy fails that is no longer the live one: the reader starts over. */
export const moved = new Error("the record has moved")

export const isSamePlace = (one: Place | undefined, other: Place) =>
  one?.file === other.file && one.position === other.position

const asBuffer = (bytes: Uint8Array) =>
  bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Shared: creating a hasher takes five times as long as hashing 4 KiB. */
const hasher = new Blake3Hasher()

/** The hash of the copy's bytes. Empty if unknown, and for a shard, which has none. */
const ownHash = (head: RecordHead) => (shardOf(head) ? "" : checksumOf(head))

/** Whether a record has the hash of its bytes, so that it verifies all of them. */
export const namesHash = (head: RecordHead) => ownHash(head) !== ""

/** Whether the bytes match the hash of the record, if it has one. */
const hasHashOf = (head: RecordHead, payload: Uint8Array) => {
  if (!namesHash(head)) return true
  hasher.reset()
  hasher.update(payload)
  return hasher.digest("base64") === ownHash(head)
}

const wrong_hash = "The bytes do not match the blob's checksum."
const wrong_checksums = "The bytes do not match their checksums."

/** Throws `damaged` if a blob's hash is not that of its record. */
export const assertHash = (head: RecordHead, digest: string) => {
  const checksum = ownHash(head)
  if (checksum !== "" && checksum !== digest) throw damaged(wrong_hash)
}

/**
 * A verified span of a small copy. A whole blob is verified by its hash, which makes its chunk
 * checksums redundant; a part, or a copy without a hash, is verified by its checksums.
 */
export const payloadSpan = ({ head, payload }: ReadRecord, { start, end }: BlobSpan) => {
  const size = heldBytesOf(head)
  if (start === 0 && end === size) {
    if (!hasHashOf(head, payload)) throw damaged(wrong_hash)
    if (!namesHash(head) && !isPayloadIntact(head, payload)) throw damaged(wrong_checksums)
    return payload
  }
  const from = Math.floor(start / chunk_bytes) * chunk_bytes
  const to = Math.min(chunkCount(end) * chunk_bytes, size)
  const chunks = payload.subarray(from, to)
  if (!isPayloadIntact(head, chunks, from / chunk_bytes)) {
    throw damaged(`Bytes ${from} to ${to} do not match their checksums.`)
  }
  return chunks.subarray(start - from, end - from)
}

/** Files that were opened again, to be closed after use. */
const freshFiles = ({ disk, dir }: CopyParts) => {
  const opened = new Map<Segment, Promise<VolumeFile>>()
  const open = async ({ kind, number }: Segment) => {
    try {
      return await disk.open(join(dir, segmentName(kind, number)))
    } catch (cause) {
      if (codeOf(cause) === "ENOENT") throw damaged(`${kind} file ${number} is missing.`, "lost")
      throw cause
    }
  }
  const fileOf = (segment: Segment): Promise<VolumeFile> => {
    const known = opened.get(segment)
    if (known) return known
    const file = open(segment)
    opened.set(segment, file)
    return file
  }
  const close = async () => {
    const files = await Promise.allSettled(opened.values())
    const closed = files.flatMap((file) =>
      file.status === "fulfilled" ? [file.value.close()] : [],
    )
    await Promise.all(closed)
  }
  return { fileOf, close }
}

/** The copies of a volume. */
export const makeCopies = (parts: CopyParts, { quarantine }: Pick<Quarantine, "quarantine">) => {
  const { segments, index } = parts
  const { noteRead, isCached } = makePageCacheEstimate()

  const segmentOf = ({ file }: Place): Segment => {
    const segment = segments.find("log", file)
    if (!segment) throw damaged(`Log file ${file} is missing.`, "lost")
    return segment
  }
  const recordIn = (id: BlobId, { bytes: length }: Place, read: Uint8Array, seed: number) => {
    const bytes = asBuffer(read)
    const head = decodeHead(bytes, 0, seed)
    if (head?.id !== id || head.kind !== "blob" || head.record_bytes !== length) {
      throw damaged("The record is damaged.")
    }
    const payload = bytes.subarray(head.head_bytes, head.head_bytes + head.payload_bytes)
    return { head, payload }
  }
  /** The record at a place, its payload not verified. Throws `damaged`. */
  const record = async (id: BlobId, place: Place, fileOf?: FileOf): Promise<ReadRecord> => {
    const { position, bytes } = place
    const segment = segmentOf(place)
    const read = fileOf
      ? await (await fileOf(segment)).read(position, bytes)
      : noteRead(place)
        ? segment.file.readSync(position, bytes)
        : await segment.file.read(position, bytes)
    return recordIn(id, place, read, segment.seed)
  }
  /** The same, synchronously. Undefined if the page cache may not have it. */
  const recordSync = (id: BlobId, place: Place): ReadRecord | undefined => {
    if (!isCached(place)) return undefined
    noteRead(place)
    const segment = segmentOf(place)
    return recordIn(id, place, segment.file.readSync(place.position, place.bytes), segment.seed)
  }
  /**
   * Runs a step that reads a copy. If it throws `damaged` twice, the copy is quarantined and
   * BlobCorrupt thrown. Throws `moved` if the copy is no longer the live one.
   */
  const guarded = async <A>(
    { id, place, at }: { readonly id: BlobId; readonly place: Place; readonly at: bigint },
    step: (fileOf?: FileOf) => Promise<A>,
  ): Promise<A> => {
    try {
      return await step()
    } catch (cause) {
      if (!damageOf(cause)) throw cause
    }
    if (!isSamePlace(index.find(id), place)) throw moved
    const fresh = freshFiles(parts)
    try {
      return await step(fresh.fileOf)
    } catch (cause) {
      const damage = damageOf(cause)
      if (!damage) throw cause
      if (!isSamePlace(index.find(id), place)) throw moved
      await quarantine({ id, place, damage, at })
      throw corrupt(id, damage)
    } finally {
      await fresh.close()
    }
  }
  return { record, recordSync, guarded }
}
export type Copies = ReturnType<typeof makeCopies>
