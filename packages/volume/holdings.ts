/**
 * What a volume holds, as other nodes are told of it: by identifiers, or page by page.
 *
 * Source: document 1 §1 InternalService; docs/decisions/0121-copies-of-a-cluster.md.
 */
import type { Copy, CopyPage } from "#actors/blob-storage/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type RecordHead, sinceOf } from "./log/record.ts"
import { deletionOf, heldCopyOf } from "./log/record-facts.ts"
import { isHeld, type Place } from "./lookup/map.ts"
import type { VolumeParts } from "./parts.ts"
import { moved } from "./reads/copies.ts"
import { isAbsence } from "./reads/reads.ts"

export interface HoldingParts extends Pick<VolumeParts, "index" | "log"> {
  /** The live copy's head; one that is damaged is set aside. */
  readonly head: (id: BlobId, at: bigint) => Promise<RecordHead>
  /** The latest time that was given, in Unix nanoseconds. */
  readonly last_at: () => bigint
}

/** Heads that are read at once. */
const heads_at_once = 64
/** Copies on one page at most. */
const page_copies_max = 10_000

export const makeHoldings = ({ index, log, head, last_at }: HoldingParts) => {
  const held = async (id: BlobId): Promise<Copy | undefined> => {
    try {
      return heldCopyOf(await head(id, last_at()))
    } catch (cause) {
      if (cause === moved || isAbsence(cause)) return undefined
      throw cause
    }
  }
  const deleted = async (id: BlobId, place: Place): Promise<Copy> => {
    const found = await log.head(id, place)
    if (found) return deletionOf(found)
    // That it was deleted is certain, and when it was at the latest.
    return { kind: "tombstone", id, deleted_at: last_at(), is_cluster_wide: false }
  }
  const tombstone = async (id: BlobId) => {
    const place = index.find(id)
    if (place?.kind !== "tombstone") return undefined
    const found = await log.head(id, place)
    return found ? sinceOf(found) : last_at()
  }
  const copyOf = async (id: BlobId): Promise<Copy | undefined> => {
    const place = index.find(id)
    if (!place || place.kind === "gone") return undefined
    return isHeld(place) ? held(id) : deleted(id, place)
  }
  const copiesOf = async (ids: ReadonlyArray<BlobId>) => {
    const copies: Array<Copy | undefined> = []
    for (let at = 0; at < ids.length; at += heads_at_once) {
      copies.push(...(await Promise.all(ids.slice(at, at + heads_at_once).map(copyOf))))
    }
    return copies
  }
  const copies = async (after_id: string, until_id: string, limit: number): Promise<CopyPage> => {
    const count = Math.min(limit, page_copies_max)
    const ids = index.between(after_id, until_id, count + 1)
    const page = ids.slice(0, count)
    const found = (await copiesOf(page)).flatMap((copy) => copy ?? [])
    return { copies: found, next: ids.length > count ? page.at(-1) : undefined }
  }
  return { copiesOf, copies, tombstone }
}
