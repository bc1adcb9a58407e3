/**
 * What an operation comes to, now that all before it is durable: a record to write, or an answer at
 * once. Nothing here waits or writes.
 */
import { type Admission, admit, store_origin } from "#actors/blob-storage/blob-admission.ts"
import type { BlobFault } from "#actors/blob-storage/blob-fault.ts"
import { type BlobId, storedPolicy } from "#schemas/blob-storage/blob.ts"
import type { Place } from "./volume-index.ts"
import type { Operation, Outcome, PutOperation } from "./volume-parts.ts"
import type { RecordHead } from "./volume-record.ts"
import {
  checksumOf,
  type Extent,
  extentsOf,
  hashOf,
  type KnownBlob,
  movedOf,
  type NewRecord,
} from "./volume-record.ts"

/** What the volume has of the operation's identifier. */
export interface Present {
  readonly place: Place | undefined
  /** The live blob's head; undefined where no blob is there, or its head was not asked for. */
  readonly head: RecordHead | undefined
  /** What is known of a blob whose head is damaged. */
  readonly known?: KnownBlob | undefined
}

/** What a record is given when it is certain that it is written. */
export interface Stamps {
  readonly cursor: () => number
  readonly stamp: (at: bigint) => bigint
}

export type Decision =
  | { readonly kind: "write"; readonly record: NewRecord; readonly outcome: Outcome }
  | { readonly kind: "answer"; readonly outcome: Outcome }
  | { readonly kind: "refuse"; readonly fault: BlobFault }

const nothing: Outcome = { head: undefined, is_done: false, at: 0n }
const no_extents = [] as const

/** What a put is answered that its admission refuses. */
export const refusalOf = (id: BlobId, admission: Admission): BlobFault | undefined => {
  if (admission.verdict === "mismatch") {
    return { _tag: "BlobIdMismatch", expected: admission.expected, actual: id }
  }
  if (admission.verdict !== "exists") return undefined
  return { _tag: "BlobAlreadyExists", id, detail: admission.detail }
}

/** Whether a put may be stored, is stored already, or is refused; asked before the commit too. */
export const admission = (put: PutOperation, head: RecordHead | undefined): Admission =>
  admit(put, head && { checksum: checksumOf(head), policy: head.policy })

const decidePut = (put: PutOperation, { head }: Present, stamps: Stamps, room: Room): Decision => {
  const admitted = admission(put, head)
  const fault = refusalOf(put.id, admitted)
  if (fault) return { kind: "refuse", fault }
  if (head) return { kind: "answer", outcome: { head, is_done: false, at: 0n } }
  const full = room(put)
  if (full) return { kind: "refuse", fault: full }
  const at = stamps.stamp(put.at)
  const is_large = put.extents.length > 0
  const record: NewRecord = {
    kind: "blob",
    is_moved: false,
    is_large,
    policy: storedPolicy(put.policy),
    id: put.id,
    hash: put.hash,
    size: put.size,
    at,
    cursor: stamps.cursor(),
    origin: put.origin,
    labels: put.labels,
    payload_bytes: is_large ? 0 : put.size,
    crcs: put.crcs,
    extents: put.extents,
    freed: no_extents,
  }
  return { kind: "write", record, outcome: { head: undefined, is_done: true, at } }
}

/** A record that an identifier is not a blob any more. */
const removal = (
  kind: "tombstone" | "quarantined" | "lost",
  id: BlobId,
  { head, known }: Present,
  how: Pick<NewRecord, "at" | "cursor" | "origin" | "labels">,
): NewRecord => ({
  kind,
  is_moved: false,
  is_large: false,
  policy: head?.policy ?? known?.policy ?? storedPolicy(),
  id,
  hash: head ? hashOf(head) : (known?.hash ?? ""),
  size: head?.size ?? known?.size ?? 0,
  at: how.at,
  cursor: how.cursor,
  origin: how.origin,
  labels: how.labels,
  payload_bytes: 0,
  crcs: [],
  extents: [],
  freed: head?.is_large ? extentsOf(head) : [],
})

const isAt = (place: Place | undefined, other: Place | undefined) =>
  place?.file === other?.file && place?.position === other?.position

/** The extents that are not among the others. */
const without = (some: ReadonlyArray<Extent>, others: ReadonlyArray<Extent>) => {
  const keyOf = ({ file, position }: Extent) => `${file} ${position}`
  const kept = new Set(others.map(keyOf))
  return some.filter((extent) => !kept.has(keyOf(extent)))
}

/** Why a put finds no room, in the capacity or on the disk; undefined: it does. */
export type Room = (put: PutOperation) => BlobFault | undefined

/** Decides one operation; the stamps are taken only where a record is to be written. */
export const decide = (
  operation: Operation,
  present: Present,
  stamps: Stamps,
  room: Room,
): Decision => {
  if (operation.kind === "put") return decidePut(operation, present, stamps, room)
  const { id } = operation
  const { place, head } = present
  if (operation.kind === "delete") {
    const at = stamps.stamp(operation.at)
    const cursor = place?.kind === "blob" ? stamps.cursor() : 0
    const how = { at, cursor, origin: operation.origin, labels: {} }
    const record = removal("tombstone", id, present, how)
    return { kind: "write", record, outcome: { head, is_done: true, at } }
  }
  if (!isAt(place, operation.place)) return { kind: "answer", outcome: nothing }
  if (operation.kind === "move") {
    const moved = movedOf(operation.head)
    const { extents } = operation
    const record = extents ? { ...moved, extents, freed: without(moved.extents, extents) } : moved
    const outcome = { head: operation.head, is_done: true, at: moved.at }
    return { kind: "write", record, outcome }
  }
  const at = stamps.stamp(operation.at)
  const labels = { detail: operation.detail.slice(0, 1000) }
  const how = { at, cursor: stamps.cursor(), origin: store_origin, labels }
  const record = removal(operation.kind, id, present, how)
  return { kind: "write", record, outcome: { head, is_done: true, at } }
}
