/**
 * Stores erasure coded blobs: splits them into stripes, encodes these, and sends one shard to each
 * owner. Two owners may fail; if more do, the put is rolled back.
 *
 * Source: document 1 §2 Replication policies, §7 INTERNAL, §8 Limits; DECISIONS, document 1,
 * placement of the receiving node; decision 0124.
 */

import type { PutOrder, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { StagedBytes } from "#actors/blob-storage/ports/node-engine.ts"
import type { Peer } from "#actors/blob-storage/ports/peers.ts"
import { parity_shards, stripeEncoder, striping, type Units } from "#erasure"
import { type BlobId, type BlobMeta, blob_id_bytes } from "#schemas/blob-storage/blob.ts"
import { admit } from "#volume"
import { metaOfShards } from "./get.ts"
import {
  type Assigned,
  assignShards,
  dataShardsOf,
  type ErasureParts,
  ownersOf,
  useless_index,
} from "./layout.ts"
import { isStored, openStores, type ShardTransfer, type Stored } from "./stores.ts"
import {
  deleteStale,
  existingCopy,
  holdersOf,
  renewOn,
  type Survey,
  survey,
  withTimeout,
} from "./survey.ts"

/** Bytes in memory with their checksum, BLAKE3-256 in hex. */
export interface HashedParts {
  readonly parts: ReadonlyArray<Uint8Array>
  readonly checksum: string
}

/**
 * Bytes in memory, or staged on this node; the caller ends the staging. Bytes that did not fit on
 * the disk were only hashed: they serve to recognize existing content.
 */
export type ErasureSource = ReadonlyArray<Uint8Array> | HashedParts | StagedBytes

/**
 * The result of a put, with the ids of the owners that have a shard now and of those that failed.
 */
export interface ErasurePut {
  readonly answer: PutResult
  readonly stored_on: ReadonlyArray<string>
  readonly failed: ReadonlyArray<string>
  /** Whether nothing reads the source any longer. An abandoned transfer may still read it. */
  readonly is_source_free: boolean
}

/** Blobs up to this size are encoded in one step, and each shard is sent in one message. */
const single_message_bytes_max = 1024 * 1024
/** Bytes to hash or encode before yielding to other work. */
const slice_bytes = 4 * 1024 * 1024
/** A conflict with another put of the same bytes is retried once. */
const attempts_max = 2

/** The last digits of a put's time identify the node. */
const node_digits = 1000n

/** The content to store. */
interface Content {
  readonly id: BlobId
  readonly checksum: string
  readonly size: number
  readonly windows: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  readonly no_room?: StagedBytes["no_room"]
}

/** A put in progress. `at` is its time, which may have been raised above a later deletion. */
interface Put {
  readonly order: PutOrder
  readonly content: Content
  readonly data_shards: number
  readonly owners: ReadonlyArray<Peer>
  readonly at: bigint
}

const pause = ({ timing }: Pick<ErasureParts, "timing">) =>
  new Promise<void>((resolve) => timing.after(0, resolve))

/** Splits parts into slices. */
const slices = function* (parts: ReadonlyArray<Uint8Array>) {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += slice_bytes) {
      yield part.subarray(at, at + slice_bytes)
    }
  }
}

/** Hashes bytes in memory, yielding to other work in between. */
const hashed = async (parts: ErasureParts, source: ReadonlyArray<Uint8Array>) => {
  const hash = parts.hasher()
  let since_pause = 0
  for (const slice of slices(source)) {
    hash.update(slice)
    since_pause += slice.length
    if (since_pause < slice_bytes) continue
    since_pause = 0
    await pause(parts)
  }
  return hash.digest()
}

const contentOf = async (parts: ErasureParts, source: ErasureSource): Promise<Content> => {
  if ("windows" in source) return source
  const given = "checksum" in source ? source.parts : source
  const checksum = "checksum" in source ? source.checksum : await hashed(parts, given)
  const size = given.reduce((sum, part) => sum + part.length, 0)
  // The brand stands for the first half of a BLAKE3 digest in hex.
  const id = checksum.slice(0, 2 * blob_id_bytes) as BlobId
  return { id, checksum, size, windows: () => slices(given) }
}

const base64Of = (hex: string) =>
  btoa(hex.replace(/../g, (pair) => String.fromCharCode(Number.parseInt(pair, 16))))

const metaOf = ({ order, content, at }: Put): BlobMeta => ({
  size: BigInt(content.size),
  created_at: at,
  modified_at: at,
  checksum: base64Of(content.checksum),
  labels: order.labels,
  policy: order.policy,
})

/** Encodes the content stripe by stripe. */
const stripesIn = async function* (
  parts: ErasureParts,
  { content, data_shards }: Put,
): AsyncGenerator<Units, void> {
  const encoder = stripeEncoder(parts.openCode(data_shards))
  let since_pause = 0
  for await (const window of content.windows()) {
    yield* encoder.push(window)
    since_pause += window.length
    if (since_pause < slice_bytes) continue
    since_pause = 0
    await pause(parts)
  }
  const last = encoder.end()
  if (last) yield last
}

/** Whether the node may have stored a shard that must be rolled back. */
const mayRemain = (stored: Stored) => (isStored(stored) ? stored.received.created : stored.is_open)

const rollBack = async (
  parts: ErasureParts,
  { content: { id }, at }: Put,
  left: ReadonlyArray<Stored>,
) => {
  const { node_id } = parts.members()
  const rollbacks = left
    .filter(mayRemain)
    .map(({ peer }) =>
      peer.node_id === node_id ? parts.guard.rollBack(id, at) : parts.peers.rollBack(peer, id, at),
    )
  // Shards that could not be rolled back are too few to make a blob; a sweep removes them.
  await withTimeout(parts, Promise.allSettled(rollbacks))
}

/** Whether another put or a deletion conflicted, so that a new survey is needed. */
const hasConflict = (left: ReadonlyArray<Stored>) =>
  left.some((stored) => {
    if (isStored(stored)) return false
    const { cause } = stored
    const code = "code" in cause ? String(cause.code) : faultOf(cause)._tag
    const others = ["ALREADY_EXISTS", "FAILED_PRECONDITION"]
    return [...others, "BlobAlreadyExists", "BlobDeletedHere"].includes(code)
  })

/** The units of each shard, by index. */
const shardsOf = (stripes: ReadonlyArray<Units>, data_shards: number) =>
  Array.from({ length: data_shards + parity_shards }, (_, index) =>
    stripes.map((units) => units[index]).filter((unit) => unit !== undefined),
  )

/**
 * Confirms that nodes still have their shards, and renews these for this put. A shard that existed
 * before may have been discarded as unfinished in the meantime, or be corrupt. A node that confirms
 * has verified its shard and keeps it.
 */
const confirmHolders = async (
  parts: ErasureParts,
  { content, at }: Put,
  candidates: ReadonlyArray<Assigned>,
) => {
  if (candidates.length === 0) return candidates
  const nodes = candidates.map(({ peer }) => peer)
  const held = await renewOn(parts, { ...content, put_at: at }, nodes)
  const shards = new Map(held.map(({ peer, copy }) => [peer.node_id, copy.shard]))
  return candidates.filter(({ peer, index }) => {
    // A whole copy includes this shard.
    return shards.has(peer.node_id) && (shards.get(peer.node_id)?.index ?? index) === index
  })
}

/** The nodes that certainly have a shard, after all transfers. */
const durableNodes = async (
  parts: ErasureParts,
  put: Put,
  assigned: ReadonlyArray<Assigned>,
  stored: ReadonlyArray<Extract<Stored, { readonly received: unknown }>>,
) => {
  const created = new Map(
    stored.map(({ peer, received }) => [peer.node_id, received.created] as const),
  )
  const candidates = assigned.filter(({ peer: { node_id }, is_held }) => {
    return is_held || created.get(node_id) === false
  })
  const confirmed = await confirmHolders(parts, put, candidates)
  const fresh = stored.filter(({ received }) => received.created)
  return [...fresh, ...confirmed].map(({ peer }) => peer.node_id)
}

/** Stores the missing shards. Returns undefined after a conflict, with nothing left stored. */
const store = async (
  parts: ErasureParts,
  put: Put,
  { responding, held }: Survey,
): Promise<ErasurePut | undefined> => {
  const { order, content, data_shards, owners, at } = put
  const { id, checksum, size } = content
  const indexes = new Map(
    holdersOf(held).map(({ peer, copy, index }) => [
      peer.node_id,
      // A shard of another code is useless for this one and blocks the node.
      copy.shard?.data_shards === data_shards ? index : useless_index,
    ]),
  )
  const assigned = assignShards(responding, indexes, data_shards)
  const targets = assigned.filter(({ is_held }) => !is_held)
  const missing = owners.length - assigned.length
  if (missing > parity_shards) {
    const detail = `${missing} of ${owners.length} shard stores failed: the nodes do not respond`
    throw faultError({ _tag: "BlobShardsFailed", detail })
  }
  const plan = striping(size, data_shards)
  const { labels, policy, origin } = order
  const transfer: ShardTransfer = {
    order: { id, checksum, size, policy, labels, created_at: at, origin },
    data_shards,
    shard_bytes: plan.shard_bytes,
    reason: "put",
  }
  const stripes = stripesIn(parts, put)
  const whole = size <= single_message_bytes_max ? await Array.fromAsync(stripes) : undefined
  const stores = openStores(
    parts,
    whole ? { ...transfer, whole: shardsOf(whole, data_shards) } : transfer,
    targets,
    parity_shards - missing,
  )
  try {
    if (!whole) for await (const units of stripes) await stores.push(units)
    const finished = await stores.finish()
    const stored = finished.filter(isStored)
    const stored_on = await durableNodes(parts, put, assigned, stored)
    if (owners.length - stored_on.length > parity_shards) {
      await rollBack(parts, put, finished)
      return undefined
    }
    const failed = owners.map(({ node_id }) => node_id).filter((one) => !stored_on.includes(one))
    const created = stored.some(({ received }) => received.created)
    const is_read_out = finished.every(isStored)
    return {
      answer: { id, meta: metaOf(put), created },
      stored_on,
      failed,
      is_source_free: is_read_out,
    }
  } catch (cause) {
    const left = await stores.abort(new Error("the put has failed"))
    await rollBack(parts, put, left)
    if (faultOf(cause)._tag === "BlobShardsFailed" && hasConflict(left)) return undefined
    throw cause
  }
}

/**
 * Completes a put whose blob is already stored; undefined if it is not. Its shards are renewed to
 * this put, so that an earlier deletion, which some nodes have not received yet, does not remove
 * them.
 */
const reuseExisting = async (
  parts: ErasureParts,
  { order, content: { id, checksum, size }, owners, at }: Put,
  held: Survey["held"],
): Promise<ErasurePut | undefined> => {
  const present = existingCopy(held)
  if (present === undefined) return undefined
  const { policy, expected_id, if_none_match } = order
  const known = { policy: present.policy, checksum: present.checksum || checksum }
  const admission = admit({ id, checksum, policy, expected_id, if_none_match }, known)
  if (admission.verdict === "exists") {
    throw faultError({ _tag: "BlobAlreadyExists", id, detail: admission.detail })
  }
  const nodes = held.map(({ peer }) => peer)
  const renewed = await renewOn(parts, { id, size, put_at: at }, nodes)
  if (existingCopy(renewed) === undefined) return undefined
  const stored_on = renewed.map(({ peer }) => peer.node_id)
  const failed = owners.map(({ node_id }) => node_id).filter((one) => !stored_on.includes(one))
  const meta = await metaOfShards(parts, held)
  return { answer: { id, meta, created: false }, stored_on, failed, is_source_free: true }
}

/**
 * The time of the put, later than any known deletion. Its last three digits identify this node:
 * shards are rolled back by their time, so two concurrent puts need different times.
 */
const timeOf = ({ members }: ErasureParts, at: bigint, { deleted_at }: Survey) => {
  const { node_id, active } = members()
  const place = BigInt(
    Math.max(
      0,
      active.findIndex((peer) => peer.node_id === node_id),
    ),
  )
  const least = at > deleted_at ? at : deleted_at + 1n
  const time = least - (least % node_digits) + (place % node_digits)
  return time < least ? time + node_digits : time
}

const put = async (
  parts: ErasureParts,
  order: PutOrder,
  content: Content,
  at: bigint,
): Promise<ErasurePut> => {
  const { id, checksum } = content
  const data_shards = dataShardsOf(order.policy)
  if (data_shards === undefined) throw new Error(`${order.policy} is not an erasure code`)
  const admission = admit({ ...order, id, checksum }, undefined)
  if (admission.verdict === "mismatch") {
    throw faultError({ _tag: "BlobIdMismatch", expected: admission.expected, actual: id })
  }
  for (let attempt = 1; attempt <= attempts_max; attempt++) {
    const owners = ownersOf(parts.members(), id, data_shards + parity_shards)
    const need = data_shards + parity_shards
    if (owners.length < need) {
      throw faultError({ _tag: "BlobTooFewNodes", have: owners.length, need })
    }
    const surveyed = await survey(parts, id, owners)
    const wanted = { order, content, data_shards, owners, at: timeOf(parts, at, surveyed) }
    const kept = await reuseExisting(parts, wanted, surveyed.held)
    // An abandoned transfer of the first attempt may still be running.
    const is_first = attempt === 1
    if (kept) return { ...kept, is_source_free: is_first }
    if (content.no_room) throw content.no_room.cause
    if (surveyed.stale.length > 0) await deleteStale(parts, id, surveyed)
    const stored = await store(parts, wanted, surveyed)
    // If everything existed by then, a concurrent put was first, and its metadata applies.
    if (stored && (stored.answer.created || !is_first)) {
      return { ...stored, is_source_free: is_first && stored.is_source_free }
    }
  }
  const detail =
    "This put conflicted with another put or a deletion of the same bytes: retry the put."
  throw faultError({ _tag: "BlobUnreachable", detail })
}

/**
 * Puts an erasure coded blob, and resolves when at most two of its owners lack a durable shard.
 * Rejects with BlobTooFewNodes; with BlobShardsFailed, or BlobUnreachable after conflicts, with
 * nothing left stored; with BlobAlreadyExists and BlobIdMismatch like any put.
 */
export const putErasure = async (
  parts: ErasureParts,
  order: PutOrder,
  source: ErasureSource,
  at: bigint,
): Promise<ErasurePut> => put(parts, order, await contentOf(parts, source), at)
