/**
 * Visits every owned span of an extent file, in disk order and verified, and copies them elsewhere,
 * so that the file can be retired.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "../blob-index/blob-index.ts"
import { type Allocation, type ExtentFiles, spanBytes, spanOfExtent } from "../extents/files.ts"
import type { OwnedSpan } from "../extents/owners.ts"
import { type Extent, extentsOf, heldBytesOf, type RecordHead } from "../log/record.ts"
import type { VolumeParts } from "../parts.ts"
import { chunk_bytes, makeChunkTable } from "../reads/chunks.ts"
import { assertHash, type Copies, isSamePlace } from "../reads/copies.ts"
import { type FileOf, ownFile, type Windows, windowsIn } from "../reads/windows.ts"
import { ignoreHandled } from "./log-mover.ts"
import type { Pace } from "./pace.ts"

export interface ExtentMoverParts extends Pick<VolumeParts, "index" | "commits"> {
  readonly copies: Copies
  readonly windows: Windows
  readonly extents: ExtentFiles
  /** The time noted for damage, in Unix nanoseconds. */
  readonly clock: () => bigint
}

/** A live blob that owns a span of the file. */
interface Owner {
  readonly id: BlobId
  readonly place: Place
  readonly head: RecordHead
  readonly extents: ReadonlyArray<Extent>
  /** The extent at that span, and its offset in the blob. */
  readonly extent: Extent
  readonly start: number
}

/**
 * The owner of a span: "none" if no record refers to it, undefined if the blob moved in the
 * meantime.
 */
const ownerOf = async (
  { index, copies, clock }: ExtentMoverParts,
  number: number,
  owned: OwnedSpan,
): Promise<Owner | "none" | undefined> => {
  const { id } = owned
  const place = index.find(id)
  if (!isHeld(place) || !place.is_large) return "none"
  const { head } = await copies.guarded({ id, place, at: clock() }, (fileOf) =>
    copies.record(id, place, fileOf),
  )
  if (!isSamePlace(index.find(id), place)) return undefined
  const extents = extentsOf(head)
  let start = 0
  for (const extent of extents) {
    const span = spanOfExtent(extent)
    const is_same = extent.file === number && span.start === owned.start && span.end === owned.end
    if (is_same) return { id, place, head, extents, extent, start }
    start += extent.bytes
  }
  return "none"
}

/** Copies one extent to an allocation, and verifies it. Returns the new extent. */
const copyExtent = async (
  { windows }: ExtentMoverParts,
  { head, extents, extent, start }: Owner,
  { segment, start: position }: Allocation,
  { pace, fileOf }: { readonly pace: Pace; readonly fileOf: FileOf },
): Promise<Extent> => {
  const chunks = makeChunkTable(start / chunk_bytes)
  for (const window of windowsIn({ start, end: start + extent.bytes })) {
    const bytes = await windows.read(extents, heldBytesOf(head), window, fileOf)
    chunks.update(bytes)
    await segment.file.write([bytes], position + window.start - start)
    await pace(bytes.length)
  }
  await segment.file.write([chunks.take(extent.bytes)], position + extent.bytes)
  return { ...extent, file: segment.number, position }
}

/** Why a blob stays where it is: no file has enough contiguous space. */
export const no_space = faultError({
  _tag: "BlobCapacityExceeded",
  detail: "No extent file has enough contiguous space.",
})

const moveExtent = async (parts: ExtentMoverParts, owner: Owner, pace: Pace) => {
  const { extents, commits, copies, clock } = parts
  const { id, place, head, extent } = owner
  const wanted = spanBytes(extent.bytes)
  const allocation = await extents.reserve(wanted, { is_upkeep: true })
  const unpin = extents.pin(owner.extents)
  try {
    if (allocation.end - allocation.start < wanted) throw no_space
    const copy = await copies.guarded({ id, place, at: clock() }, (fileOf = ownFile) =>
      copyExtent(parts, owner, allocation, { pace, fileOf }),
    )
    await extents.sync(allocation.segment)
    const now = owner.extents.map((one) => (one === extent ? copy : one))
    const payload = Buffer.alloc(0)
    await commits.submit({ kind: "move", id, place, head, payload, extents: now })
  } finally {
    unpin()
    // Does nothing if the record owns it already. If writing has failed, the record may own it.
    if (commits.failed() === undefined) extents.release(allocation)
  }
}

/** Copies all owned spans of a file elsewhere. The file must be closed to uploads. */
export const emptyExtentFile = async (parts: ExtentMoverParts, number: number, pace: Pace) => {
  for (const owned of parts.extents.owners(number)) {
    try {
      const owner = await ownerOf(parts, number, owned)
      if (owner === "none") parts.extents.forget(number, owned)
      else if (owner) await moveExtent(parts, owner, pace)
    } catch (cause) {
      ignoreHandled(cause)
    }
  }
}

/** Verifies an extent; if it is the first one, the whole blob and its hash. */
const verifyOwner = async (parts: ExtentMoverParts, owner: Owner, pace: Pace, fileOf?: FileOf) => {
  const { head, extents, extent, start } = owner
  const is_first = start === 0
  const end = is_first ? heldBytesOf(head) : start + extent.bytes
  const hasher = is_first ? new Blake3Hasher() : undefined
  for (const window of windowsIn({ start, end })) {
    const bytes = await parts.windows.read(extents, heldBytesOf(head), window, fileOf)
    hasher?.update(bytes)
    await pace(bytes.length)
  }
  if (hasher) assertHash(head, hasher.digest("base64"))
}

/** Verifies all owned spans of a file. Damage is handled as in a read. */
export const verifyExtentFile = async (parts: ExtentMoverParts, number: number, pace: Pace) => {
  const { extents, copies, clock } = parts
  for (const owned of extents.owners(number)) {
    let unpin = () => {}
    try {
      const owner = await ownerOf(parts, number, owned)
      if (!owner || owner === "none") continue
      unpin = extents.pin(owner.extents)
      const { id, place } = owner
      await copies.guarded({ id, place, at: clock() }, (fileOf) =>
        verifyOwner(parts, owner, pace, fileOf),
      )
    } catch (cause) {
      ignoreHandled(cause)
    } finally {
      unpin()
    }
    await pace(0)
  }
}
