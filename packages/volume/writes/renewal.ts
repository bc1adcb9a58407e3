/**
 * Updates a stored copy to a later put of the same content: its record is rewritten as in a move,
 * and replaces the old one once it is durable. An inline payload is verified on the way.
 *
 * Source: DECISIONS, document 1, delete and replicas; docs/decisions/0125-repair.md.
 */
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { HeldCopy, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "../blob-index/blob-index.ts"
import { heldBytesOf, putAtOf } from "../log/record.ts"
import { heldCopyOf } from "../log/record-facts.ts"
import type { ReadRecord, VolumeParts } from "../parts.ts"
import { type Copies, moved, payloadSpan } from "../reads/copies.ts"

export interface RenewalParts extends Pick<VolumeParts, "index" | "commits" | "log"> {
  readonly copies: Copies
}

/**
 * A record may move in the meantime, by compaction or by a delete and a put. It is then looked up
 * again.
 */
const attempts_max = 100
const no_payload = Buffer.alloc(0)

const makeRecordOf = ({ log, copies }: RenewalParts) => {
  /** The verified record and payload. A damaged copy is quarantined. */
  const verified = (id: BlobId, place: Place, at: bigint) =>
    copies.guarded({ id, place, at }, async (fileOf) => {
      const record = await copies.record(id, place, fileOf)
      if (!place.is_large) payloadSpan(record, { start: 0, end: heldBytesOf(record.head) })
      return record
    })
  return async (id: BlobId, place: Place, put_at: bigint, at: bigint): Promise<ReadRecord> => {
    const head = await log.head(id, place)
    const is_enough = head !== undefined && (place.is_large || putAtOf(head) >= put_at)
    return is_enough ? { head, payload: no_payload } : verified(id, place, at)
  }
}

export const makeRenew = (parts: RenewalParts): NodeEngine["renew"] => {
  const { index, commits } = parts
  const recordOf = makeRecordOf(parts)

  /** Undefined if the record moved in the meantime. */
  const renewAt = async (
    [id, place]: readonly [BlobId, Place],
    put_at: bigint,
    at: bigint,
  ): Promise<HeldCopy | undefined> => {
    const { head, payload } = await recordOf(id, place, put_at, at)
    const copy = heldCopyOf(head)
    if (copy.put_at >= put_at) return copy
    const renewal = { put_at, at }
    const { record } = await commits.submit({ kind: "move", id, place, head, payload, renewal })
    return record && { ...copy, put_at, stored_at: record.at }
  }
  return async (id, put_at, at) => {
    commits.assertWritable()
    for (let attempt = 1; attempt <= attempts_max; attempt++) {
      const place = index.find(id)
      if (!isHeld(place)) return undefined
      try {
        const copy = await renewAt([id, place], put_at, at)
        if (copy !== undefined) return copy
      } catch (cause) {
        if (faultOf(cause)._tag === "BlobCorrupt") return undefined
        if (cause !== moved) throw cause
      }
    }
    throw moved
  }
}
