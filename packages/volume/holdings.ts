/**
 * Describes the copies and deletions on this node to other nodes: by id, or page by page.
 *
 * Source: document 1 §1 InternalService; docs/decisions/0121-copies-of-a-cluster.md.
 */
import type { Copy, CopyPage } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "./blob-index/blob-index.ts"
import { type RecordHead, sinceOf } from "./log/record.ts"
import { deletionOf, heldCopyOf } from "./log/record-facts.ts"
import type { VolumeParts } from "./parts.ts"
import { moved } from "./reads/copies.ts"
import { isAbsence } from "./reads/reads.ts"

export interface HoldingParts extends Pick<VolumeParts, "index" | "log"> {
  /** The live copy's head. A damaged copy is quarantined. */
  readonly head: (id: BlobId, at: bigint) => Promise<RecordHead>
  /** The time of the last record, in Unix nanoseconds. */
  readonly last_at: () => bigint
}

/** Heads read concurrently. */
const heads_at_once = 64
/** Maximum copies per page. */
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
    // The deletion itself is certain; it happened no later than this.
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
