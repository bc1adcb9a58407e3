/**
 * Decides the outcome of an operation once everything before it is durable: a record to write, or
 * an immediate response. This code neither waits nor writes.
 */

import type { BlobFault } from "#actors/blob-storage/ports/fault.ts"
import type { Shard } from "#actors/blob-storage/ports/node-engine.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import { type BlobId, storedPolicy } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "../blob-index/blob-index.ts"
import type { Operation, Outcome, PutOperation } from "../parts.ts"
import { admitCopy, putAtIn } from "../writes/copy-admission.ts"
import { type Admission, admit } from "../writes/put-admission.ts"
import type { RecordHead } from "./record.ts"
import {
  type BlobTail,
  checksumOf,
  clusterAtOf,
  type Extent,
  extentsOf,
  hashOf,
  type NewRecord,
  putAtOf,
  shardOf,
  sinceOf,
} from "./record.ts"
import { movedOf, zeroIfEqual } from "./record-facts.ts"

/** The current state of the operation's id. */
export interface Present {
  readonly place: Place | undefined
  /** The live copy's head. Undefined if there is no copy, or if its head was not read. */
  readonly head: RecordHead | undefined
  /** The tombstone's head, if there is an intact one. */
  readonly tombstone?: RecordHead | undefined
  /** The blob's tail, if its head is corrupt. */
  readonly tail?: BlobTail | undefined
}

/** Assigns cursors and times to records that will be written. */
export interface Stamps {
  readonly cursor: () => number
  readonly stamp: (at: bigint) => bigint
  /** The last time assigned. */
  readonly last_at: bigint
}

export type Decision =
  | { readonly kind: "write"; readonly record: NewRecord; readonly outcome: Outcome }
  | { readonly kind: "return"; readonly outcome: Outcome }
  | { readonly kind: "refuse"; readonly fault: BlobFault }

const no_outcome: Outcome = { head: undefined, is_done: false, record: undefined, at: 0n }
const no_change: Decision = { kind: "return", outcome: no_outcome }
const no_extents = [] as const

/** The fault of a put that admission refuses. */
export const refusalOf = (id: BlobId, admission: Admission): BlobFault | undefined => {
  if (admission.verdict === "mismatch") {
    return { _tag: "BlobIdMismatch", expected: admission.expected, actual: id }
  }
  if (admission.verdict !== "exists") return undefined
  return { _tag: "BlobAlreadyExists", id, detail: admission.detail }
}

/**
 * Whether a put may be stored, is already stored, or is refused. Also checked before the commit.
 */
export const admission = (put: PutOperation, head: RecordHead | undefined): Admission =>
  admit(put, head && { checksum: checksumOf(head), policy: head.policy })

/** Why a put, or a copy from another node, is refused. */
const putFault = (put: PutOperation, { head }: Present, deleted_at: bigint | undefined) => {
  if (put.copy === undefined) return refusalOf(put.id, admission(put, head))
  const held = head && { checksum: hashOf(head), shard: shardOf(head) }
  const admitted = admitCopy(put.copy, { held, deleted_at })
  return admitted.verdict === "refuse" ? admitted.fault : undefined
}

/** When the id was deleted: the latest possible time if the tombstone is corrupt. */
const deletedAt = ({ place, tombstone }: Present, { last_at }: Stamps) => {
  if (place?.kind !== "tombstone") return undefined
  return tombstone ? sinceOf(tombstone) : last_at
}

/** The later of two times. */
export const latest = (one: bigint, other: bigint) => (one > other ? one : other)

/**
 * Whether a put's extents replace those of the stored copy. The new content is known to be intact,
 * so the old one need not be read, however large it is. Never for a shard, which has no hash.
 */
export const replacesExtents = (is_large: boolean, head: RecordHead, shard: Shard | undefined) =>
  is_large && head.is_large && shard === undefined && shardOf(head) === undefined

/** Gives the stored copy the extents of a put of the same content, and its put time if later. */
const decideReplacement = (
  { copy, extents, at }: PutOperation,
  head: RecordHead,
  present: Present,
  stamps: Stamps,
  spaceFault: SpaceFault,
): Decision => {
  const full = spaceFault({ bytes: 0, extents })
  if (full) return { kind: "refuse", fault: full }
  const is_later = copy !== undefined && putAtIn(copy) > putAtOf(head)
  const moved = movedOf(
    head,
    is_later ? { put_at: putAtIn(copy), at: stamps.stamp(at) } : undefined,
  )
  return written({ ...moved, extents, freed: without(moved.extents, extents) }, present)
}

const decidePut = (
  put: PutOperation,
  present: Present,
  stamps: Stamps,
  spaceFault: SpaceFault,
): Decision => {
  const { head } = present
  const deleted_at = deletedAt(present, stamps)
  const fault = putFault(put, present, deleted_at)
  if (fault) return { kind: "refuse", fault }
  if (head && replacesExtents(put.extents.length > 0, head, put.copy?.shard)) {
    return decideReplacement(put, head, present, stamps, spaceFault)
  }
  if (head) return { kind: "return", outcome: { ...no_outcome, head } }
  const full = spaceFault(put)
  if (full) return { kind: "refuse", fault: full }
  const at = stamps.stamp(put.at)
  // The deletion may come from a node whose clock is ahead: this put happened after it.
  const put_at = deleted_at === undefined ? at : latest(at, deleted_at + 1n)
  const is_large = put.extents.length > 0
  const record: NewRecord = {
    kind: "blob",
    is_moved: false,
    is_large,
    policy: storedPolicy(put.policy),
    id: put.id,
    hash: put.hash,
    size: put.size,
    shard: put.copy?.shard,
    at,
    since: zeroIfEqual(at, put.copy?.created_at ?? put_at),
    cluster_at: 0n,
    put_at: put.copy === undefined ? 0n : zeroIfEqual(put.copy.created_at, putAtIn(put.copy)),
    cursor: stamps.cursor(),
    origin: put.origin,
    labels: put.labels,
    payload_bytes: is_large ? 0 : put.bytes,
    crcs: put.crcs,
    extents: put.extents,
    freed: no_extents,
  }
  return { kind: "write", record, outcome: { head: undefined, is_done: true, record, at } }
}

/** A record that ends a copy or deletes a blob. */
const removal = (
  kind: Exclude<NewRecord["kind"], "blob">,
  id: BlobId,
  { head, tail }: Present,
  fields: Pick<NewRecord, "at" | "cursor"> & Partial<NewRecord>,
): NewRecord => ({
  kind,
  is_moved: false,
  is_large: false,
  policy: head?.policy ?? tail?.policy ?? storedPolicy(),
  id,
  hash: head ? hashOf(head) : (tail?.hash ?? ""),
  size: head?.size ?? tail?.size ?? 0,
  shard: head ? shardOf(head) : tail?.shard,
  since: 0n,
  cluster_at: 0n,
  put_at: 0n,
  origin: store_origin,
  labels: {},
  payload_bytes: 0,
  crcs: [],
  extents: [],
  freed: head?.is_large ? extentsOf(head) : [],
  ...fields,
})

/** Writes a record. The caller gets the outcome once it is durable. */
const written = (record: NewRecord, { head }: Present): Decision => ({
  kind: "write",
  record,
  outcome: { head, is_done: true, record, at: record.at },
})

type DeleteOperation = Extract<Operation, { readonly kind: "delete" }>

/** Whether a cluster-wide deletion is already known, or was before the last put. */
const isSuperseded = (cluster_at: bigint, { head, tombstone }: Present) =>
  head ? putAtOf(head) > cluster_at : tombstone ? clusterAtOf(tombstone) >= cluster_at : false

const decideDelete = (
  { id, origin, at: now, cluster_at = 0n }: DeleteOperation,
  present: Present,
  stamps: Stamps,
): Decision => {
  if (cluster_at > 0n && isSuperseded(cluster_at, present)) return no_change
  const { place, head, tombstone } = present
  const at = stamps.stamp(now)
  // Compared with the current record, because another node's clock may be ahead.
  const before = tombstone ?? head
  const newest = latest(cluster_at > 0n ? cluster_at : at, before ? putAtOf(before) : 0n)
  const deletion_at = latest(cluster_at, tombstone ? clusterAtOf(tombstone) : 0n)
  const times = { at, since: zeroIfEqual(at, newest), cluster_at: deletion_at }
  const cursor = isHeld(place) ? stamps.cursor() : 0
  return written(removal("tombstone", id, present, { ...times, cursor, origin }), present)
}

const decideRelease = (
  { id, stored_at, at: now }: Extract<Operation, { readonly kind: "release" }>,
  present: Present,
  stamps: Stamps,
): Decision => {
  if (present.head?.at !== stored_at) return no_change
  const at = stamps.stamp(now)
  return written(removal("released", id, present, { at, cursor: stamps.cursor() }), present)
}

const isAt = (place: Place | undefined, other: Place) =>
  place?.file === other.file && place.position === other.position

/** The extents that are not among the others. */
const without = (some: ReadonlyArray<Extent>, others: ReadonlyArray<Extent>) => {
  const keyOf = ({ file, position }: Extent) => `${file} ${position}`
  const kept = new Set(others.map(keyOf))
  return some.filter((extent) => !kept.has(keyOf(extent)))
}

/** Why a put exceeds the capacity or the disk. Undefined: it fits. */
export type SpaceFault = (put: Pick<PutOperation, "bytes" | "extents">) => BlobFault | undefined

type MoveOperation = Extract<Operation, { readonly kind: "move" }>

/** Rewrites a live record: unchanged, with other extents, or with a later put time. */
const decideMove = (
  { head, extents, renewal }: MoveOperation,
  present: Present,
  stamps: Stamps,
  spaceFault: SpaceFault,
): Decision => {
  const full = renewal && spaceFault({ bytes: 0, extents: no_extents })
  if (full) return { kind: "refuse", fault: full }
  const moved = movedOf(head, renewal && { ...renewal, at: stamps.stamp(renewal.at) })
  const record = extents ? { ...moved, extents, freed: without(moved.extents, extents) } : moved
  return written(record, { ...present, head })
}

/** Decides one operation. Uses a stamp only if a record is written. */
export const decide = (
  operation: Operation,
  present: Present,
  stamps: Stamps,
  spaceFault: SpaceFault,
): Decision => {
  if (operation.kind === "put") return decidePut(operation, present, stamps, spaceFault)
  if (operation.kind === "delete") return decideDelete(operation, present, stamps)
  if (operation.kind === "release") return decideRelease(operation, present, stamps)
  const { id } = operation
  if (!isAt(present.place, operation.place)) return no_change
  if (operation.kind === "move") return decideMove(operation, present, stamps, spaceFault)
  const at = stamps.stamp(operation.at)
  if (operation.kind === "absent") {
    return written(removal("released", id, present, { at, cursor: 0 }), present)
  }
  const fields = {
    at,
    cursor: stamps.cursor(),
    labels: { detail: operation.detail.slice(0, 1000) },
  }
  return written(removal(operation.kind, id, present, fields), present)
}
