/**
 * The state of a store in memory. Each operation is one synchronous step, so no state is partial.
 */

import type { BlobFact, PutOrder, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { type BlobFault, faultError } from "#actors/blob-storage/ports/fault.ts"
import type {
  Copy,
  CopyOrder,
  HeldCopy,
  ReceiveResult,
} from "#actors/blob-storage/ports/node-engine.ts"
import { type BlobOrigin, store_origin } from "#actors/blob-storage/ports/origin.ts"
import { type BlobId, type BlobMeta, storedPolicy } from "#schemas/blob-storage/blob.ts"
import { admit, admitCopy, putAtIn } from "#volume"

export interface MemoryCopy {
  readonly copy: HeldCopy
  readonly meta: BlobMeta
  readonly bytes: Uint8Array
  /** The first corrupt byte; undefined if intact. */
  readonly corrupt_at: number | undefined
}

export interface MemoryDeletion {
  /** The latest deletion of any kind. */
  readonly deleted_at: bigint
  /** The latest cluster-wide deletion. */
  readonly cluster_at: bigint | undefined
}

/** Everything that survives a restart. */
export interface MemoryImage {
  readonly held: ReadonlyMap<BlobId, MemoryCopy>
  readonly deletions: ReadonlyMap<BlobId, MemoryDeletion>
  readonly journal: ReadonlyArray<BlobFact>
  readonly cursor: number
  readonly last_at: bigint
  readonly quarantined: number
}

const empty_image: MemoryImage = {
  held: new Map(),
  deletions: new Map(),
  journal: [],
  cursor: 0,
  last_at: 0n,
  quarantined: 0,
}

/** The identity of content. */
export interface Identified {
  readonly id: BlobId
  /** BLAKE3-256 in hex. */
  readonly hash: string
}

const base64Of = (hex: string) => Buffer.from(hex, "hex").toString("base64")

const bytesOfAll = (held: ReadonlyMap<BlobId, MemoryCopy>) => {
  let sum = 0
  for (const { bytes } of held.values()) sum += bytes.length
  return sum
}

/** A deletion as the port reports it; a cluster-wide one takes precedence. */
export const deletionOf = (id: BlobId, { deleted_at, cluster_at }: MemoryDeletion): Copy => ({
  kind: "tombstone",
  id,
  deleted_at: cluster_at ?? deleted_at,
  is_cluster_wide: cluster_at !== undefined,
  ...(deleted_at > (cluster_at ?? deleted_at) && { refuses_until: deleted_at }),
})

interface NewCopy {
  readonly id: BlobId
  readonly hash: string
  readonly meta: BlobMeta
  readonly shard: HeldCopy["shard"]
  readonly put_at: bigint
  readonly stored_at: bigint
  readonly bytes: Uint8Array
}

const copyOf = ({ id, hash, meta, shard, put_at, stored_at }: NewCopy): HeldCopy => ({
  kind: shard ? "shard" : "whole",
  id,
  size: Number(meta.size),
  checksum: hash,
  policy: meta.policy,
  created_at: meta.created_at,
  put_at,
  stored_at,
  shard,
})

const largest = (one: bigint, other: bigint | undefined) =>
  other !== undefined && other > one ? other : one

const factOf = (
  cursor: number,
  kind: BlobFact["kind"],
  { copy, meta, bytes }: MemoryCopy,
  at: bigint,
  { actor, request_id, correlation_id }: BlobOrigin,
): BlobFact => ({
  cursor,
  kind,
  id: copy.id,
  size: copy.size,
  checksum: meta.checksum,
  policy: copy.policy,
  at,
  actor,
  request_id,
  correlation_id,
  ...(copy.shard ? { shard: { ...copy.shard, bytes: bytes.length } } : {}),
  ...(kind === "stored" ? { labels: meta.labels } : {}),
})

/** State shared by the operations. */
const makeStateParts = (image: MemoryImage) => {
  const held = new Map(image.held)
  const deletions = new Map(image.deletions)
  let journal = [...image.journal]
  let { cursor, last_at, quarantined } = image
  let used_bytes = bytesOfAll(held)

  const stamp = (at: bigint) => {
    last_at = at > last_at ? at : last_at + 1n
    return last_at
  }
  const record = (kind: BlobFact["kind"], one: MemoryCopy, at: bigint, origin: BlobOrigin) => {
    cursor += 1
    journal.push(factOf(cursor, kind, one, at, origin))
  }
  return {
    held,
    deletions,
    stamp,
    insert: (new_copy: NewCopy, origin: BlobOrigin) => {
      const one = {
        copy: copyOf(new_copy),
        meta: new_copy.meta,
        bytes: new_copy.bytes,
        corrupt_at: undefined,
      }
      held.set(new_copy.id, one)
      deletions.delete(new_copy.id)
      used_bytes += new_copy.bytes.length
      record("stored", one, new_copy.stored_at, origin)
      return one
    },
    drop: (
      kind: Exclude<BlobFact["kind"], "stored">,
      one: MemoryCopy,
      at: bigint,
      origin: BlobOrigin,
    ) => {
      held.delete(one.copy.id)
      used_bytes -= one.bytes.length
      if (kind === "quarantined") quarantined += 1
      record(kind, one, at, origin)
    },
    cursor: () => cursor,
    journal: (): ReadonlyArray<BlobFact> => journal,
    forget: (up_to: number) => {
      journal = journal.filter((fact) => fact.cursor > up_to)
    },
    counts: () => ({ used_bytes, blob_count: held.size, quarantined }),
    image: (): MemoryImage => ({
      held: new Map(held),
      deletions: new Map(deletions),
      journal: [...journal],
      cursor,
      last_at,
      quarantined,
    }),
  }
}
type StateParts = ReturnType<typeof makeStateParts>

const refusal = (
  { id, hash }: Identified,
  order: PutOrder,
  present: MemoryCopy | undefined,
): BlobFault | undefined => {
  const { policy, expected_id, if_none_match } = order
  const offered = { id, checksum: base64Of(hash), policy, expected_id, if_none_match }
  const admission = admit(offered, present?.meta)
  if (admission.verdict === "mismatch") {
    return { _tag: "BlobIdMismatch", expected: admission.expected, actual: id }
  }
  if (admission.verdict !== "exists") return undefined
  return { _tag: "BlobAlreadyExists", id, detail: admission.detail }
}

/** Renews a copy to a later put; undefined if there is no copy. */
const makeRenew =
  ({ held, stamp }: StateParts) =>
  (id: BlobId, put_at: bigint, now: bigint): HeldCopy | undefined => {
    const one = held.get(id)
    if (one === undefined || one.copy.put_at >= put_at) return one?.copy
    const copy = { ...one.copy, put_at, stored_at: stamp(now) }
    held.set(id, { ...one, copy })
    return copy
  }

const makePuts = (parts: StateParts, renew: ReturnType<typeof makeRenew>) => {
  const { held, deletions, stamp, insert, drop, cursor } = parts
  /** The local copy if it is intact; a corrupt one is quarantined first. */
  const intactCopy = (id: BlobId, now: bigint) => {
    const one = held.get(id)
    if (one?.corrupt_at === undefined) return one
    drop("quarantined", one, stamp(now), store_origin)
    return undefined
  }
  return {
    /** `whole` throws if there was no space for the bytes. */
    put: (
      order: PutOrder,
      { id, hash }: Identified,
      whole: () => Uint8Array,
      now: bigint,
    ): PutResult => {
      const present = intactCopy(id, now)
      const fault = refusal({ id, hash }, order, present)
      if (fault) throw faultError(fault)
      if (present) return { id, meta: present.meta, created: false }
      const bytes = whole()
      const stored_at = stamp(now)
      const deletion = deletions.get(id)
      // A deletion by another node's clock may be in the future, and this put came after it.
      const created_at = largest(stored_at, deletion && deletion.deleted_at + 1n)
      const meta: BlobMeta = {
        size: BigInt(bytes.length),
        created_at,
        modified_at: created_at,
        checksum: base64Of(hash),
        labels: order.labels,
        policy: storedPolicy(order.policy),
      }
      const new_copy = { id, hash, meta, shard: undefined, put_at: created_at, stored_at, bytes }
      insert(new_copy, order.origin)
      return { id, meta, created: true, cursor: cursor() }
    },
    receive: (order: CopyOrder, bytes: Uint8Array, now: bigint): ReceiveResult => {
      const { id, checksum: hash, size, created_at, shard, labels } = order
      const present = intactCopy(id, now)
      const admission = admitCopy(order, {
        held: present?.copy,
        deleted_at: deletions.get(id)?.deleted_at,
      })
      if (admission.verdict === "refuse") throw faultError(admission.fault)
      if (present) return { copy: renew(id, putAtIn(order), now) ?? present.copy, created: false }
      const meta: BlobMeta = {
        size: BigInt(size),
        created_at,
        modified_at: created_at,
        labels,
        checksum: base64Of(hash),
        policy: storedPolicy(order.policy),
      }
      const new_copy = {
        id,
        hash,
        meta,
        shard,
        put_at: putAtIn(order),
        stored_at: stamp(now),
        bytes,
      }
      return { copy: insert(new_copy, order.origin).copy, created: true }
    },
  }
}

const makeRemovals = ({ held, deletions, stamp, drop }: StateParts) => ({
  remove: (id: BlobId, origin: BlobOrigin, now: bigint) => {
    const at = stamp(now)
    const present = held.get(id)
    const before = deletions.get(id)
    const latest = largest(largest(at, present?.copy.put_at), before?.deleted_at)
    deletions.set(id, { deleted_at: latest, cluster_at: before?.cluster_at })
    if (present) drop("deleted", present, at, origin)
  },
  removeClusterWide: (id: BlobId, origin: BlobOrigin, deleted_at: bigint, now: bigint) => {
    const present = held.get(id)
    const before = deletions.get(id)
    if (present && present.copy.put_at > deleted_at) return
    if (before?.cluster_at !== undefined && before.cluster_at >= deleted_at) return
    const at = stamp(now)
    const latest = largest(deleted_at, before?.deleted_at)
    deletions.set(id, { deleted_at: latest, cluster_at: deleted_at })
    if (present) drop("deleted", present, at, origin)
  },
  release: (id: BlobId, stored_at: bigint, now: bigint) => {
    const present = held.get(id)
    if (present?.copy.stored_at !== stored_at) return false
    drop("released", present, stamp(now), store_origin)
    return true
  },
  quarantine: (one: MemoryCopy, now: bigint) => {
    if (held.get(one.copy.id) === one) drop("quarantined", one, stamp(now), store_origin)
  },
})

/** Creates a state, empty or from an image, which it does not modify. */
export const makeMemoryState = (image: MemoryImage = empty_image) => {
  const parts = makeStateParts(image)
  const { held } = parts
  const renew = makeRenew(parts)
  return {
    ...parts,
    ...makePuts(parts, renew),
    renew,
    ...makeRemovals(parts),
    /** Corrupts a byte; false if no copy has it. */
    corrupt: (id: BlobId, offset: number) => {
      const one = held.get(id)
      if (!one || offset >= Math.max(1, one.bytes.length)) return false
      held.set(id, { ...one, corrupt_at: offset })
      return true
    },
  }
}
export type MemoryState = ReturnType<typeof makeMemoryState>
