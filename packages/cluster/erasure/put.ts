/**
 * Erasure coded blobs as they are put: cut into stripes, coded, and stored by the blob's owners, a
 * shard each. Two of them may fail; where more do, nothing is left of the put.
 *
 * Source: document 1 §2 Replication policies, §7 INTERNAL, §8 Limits; DECISIONS, document 1,
 * placement of the receiving node; decision 0124.
 */

import { admit } from "#actors/blob-storage/blobs/admission.ts"
import type { PutAnswer, PutOrder } from "#actors/blob-storage/blobs/engine.ts"
import { faultOf, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { StagedBytes } from "#actors/blob-storage/node-engine.ts"
import type { Peer } from "#actors/blob-storage/peers.ts"
import { parity_shards, stripeEncoder, striping, type Units } from "#erasure"
import { type BlobId, type BlobMeta, blob_id_bytes } from "#schemas/blob-storage/blob.ts"
import { metaOfShards } from "./get.ts"
import {
  type Assigned,
  assignShards,
  dataShardsOf,
  type ErasureParts,
  no_index,
  ownersOf,
} from "./layout.ts"
import { isStored, openStores, type Shipping, type Stored } from "./stores.ts"
import {
  deleteStale,
  holdersOf,
  presentIn,
  renewOn,
  type Survey,
  survey,
  within,
} from "./survey.ts"

/** Bytes that are there and whose checksum, BLAKE3-256 in hex, is known. */
export interface HashedParts {
  readonly parts: ReadonlyArray<Uint8Array>
  readonly checksum: string
}

/**
 * Bytes that are there, or that were staged on this node: whoever staged them ends that. Those that
 * it had no room for are stored nowhere, and are good for a repetition only.
 */
export type ErasureSource = ReadonlyArray<Uint8Array> | HashedParts | StagedBytes

/** What a put came to, and which of the blob's owners have a shard now: their ids. */
export interface ErasurePut {
  readonly answer: PutAnswer
  readonly stored_on: ReadonlyArray<string>
  readonly failed: ReadonlyArray<string>
  /** Whether nobody reads the put's bytes any more, as a node does that was given up. */
  readonly is_read_out: boolean
}

/** A blob up to here is coded at once, and each shard sent in one message. */
const at_once_bytes_max = 1024 * 1024
/** Bytes that are hashed or coded before others have their turn. */
const slice_bytes = 4 * 1024 * 1024
/** Another put of the same bytes may be in the way once. */
const attempts_max = 2

/** Nanoseconds of a put's time that say which node's it is. */
const digits = 1000n

/** What is to be stored, and where its bytes come from. */
interface Content {
  readonly id: BlobId
  readonly checksum: string
  readonly size: number
  readonly windows: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  readonly no_room?: StagedBytes["no_room"]
}

/** The put that is under way: `at` is its time, which a later deletion may have moved. */
interface Put {
  readonly order: PutOrder
  readonly content: Content
  readonly data_shards: number
  readonly owners: ReadonlyArray<Peer>
  readonly at: bigint
}

const pause = ({ timing }: Pick<ErasureParts, "timing">) =>
  new Promise<void>((resolve) => timing.after(0, resolve))

/** Parts of at most a slice each. */
const slices = function* (parts: ReadonlyArray<Uint8Array>) {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += slice_bytes) {
      yield part.subarray(at, at + slice_bytes)
    }
  }
}

/** The checksum of bytes that are there, with a turn for others in between. */
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
  // The first half of a BLAKE3 digest in hex is what the brand says.
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

/** The bytes in stripes, one at a time. */
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

/** What of a shard may lie on a node now that nobody is to count on. */
const isLeft = (stored: Stored) => (isStored(stored) ? stored.received.created : stored.is_open)

const takeBack = async (
  parts: ErasureParts,
  { content: { id }, at }: Put,
  left: ReadonlyArray<Stored>,
) => {
  const { node_id } = parts.members()
  const taking = left
    .filter(isLeft)
    .map(({ peer }) =>
      peer.node_id === node_id ? parts.guard.takeBack(id, at) : parts.peers.takeBack(peer, id, at),
    )
  // What could not be taken back is too little to be a blob, and goes with a sweep.
  await within(parts, Promise.allSettled(taking))
}

/** Whether another put, or a deletion, was in the way: then there is more to know than before. */
const isOvertaken = (left: ReadonlyArray<Stored>) =>
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
 * Those that have their shard still, for this put too. One that was there before may have been let
 * go meanwhile, as of a put that nobody finished, or be corrupt. Who says now that it has it has
 * read it, and keeps it: whoever looks from now on sees the rest.
 */
const stillHolding = async (
  parts: ErasureParts,
  { content, at }: Put,
  relied: ReadonlyArray<Assigned>,
) => {
  if (relied.length === 0) return relied
  const nodes = relied.map(({ peer }) => peer)
  const held = await renewOn(parts, { ...content, put_at: at }, nodes)
  const shards = new Map(held.map(({ peer, copy }) => [peer.node_id, copy.shard]))
  return relied.filter(({ peer, index }) => {
    // Who has all of the blob has this shard too.
    return shards.has(peer.node_id) && (shards.get(peer.node_id)?.index ?? index) === index
  })
}

/** Who has a shard for certain, now that all that could be stored are. */
const countOn = async (
  parts: ErasureParts,
  put: Put,
  assigned: ReadonlyArray<Assigned>,
  stored: ReadonlyArray<Extract<Stored, { readonly received: unknown }>>,
) => {
  const created = new Map(
    stored.map(({ peer, received }) => [peer.node_id, received.created] as const),
  )
  const relied = assigned.filter(({ peer: { node_id }, is_held }) => {
    return is_held || created.get(node_id) === false
  })
  const still = await stillHolding(parts, put, relied)
  const fresh = stored.filter(({ received }) => received.created)
  return [...fresh, ...still].map(({ peer }) => peer.node_id)
}

/** Stores what nobody has yet. Undefined where something was in the way, and nothing was stored. */
const store = async (
  parts: ErasureParts,
  put: Put,
  { answering, held }: Survey,
): Promise<ErasurePut | undefined> => {
  const { order, content, data_shards, owners, at } = put
  const { id, checksum, size } = content
  const indexes = new Map(
    holdersOf(held).map(({ peer, copy, index }) => [
      peer.node_id,
      // A shard of another code is none of this one's, and is in its way.
      copy.shard?.data_shards === data_shards ? index : no_index,
    ]),
  )
  const assigned = assignShards(answering, indexes, data_shards)
  const targets = assigned.filter(({ is_held }) => !is_held)
  const missing = owners.length - assigned.length
  if (missing > parity_shards) {
    const detail = `${missing} of ${owners.length} shard stores failed: they do not answer`
    throw thrown({ _tag: "BlobShardsFailed", detail })
  }
  const plan = striping(size, data_shards)
  const { labels, policy, origin } = order
  const shipping: Shipping = {
    order: { id, checksum, size, policy, labels, created_at: at, origin },
    data_shards,
    shard_bytes: plan.shard_bytes,
    reason: "put",
  }
  const stripes = stripesIn(parts, put)
  const whole = size <= at_once_bytes_max ? await Array.fromAsync(stripes) : undefined
  const stores = openStores(
    parts,
    whole ? { ...shipping, whole: shardsOf(whole, data_shards) } : shipping,
    targets,
    parity_shards - missing,
  )
  try {
    if (!whole) for await (const units of stripes) await stores.push(units)
    const finished = await stores.finish()
    const stored = finished.filter(isStored)
    const stored_on = await countOn(parts, put, assigned, stored)
    if (owners.length - stored_on.length > parity_shards) {
      await takeBack(parts, put, finished)
      return undefined
    }
    const failed = owners.map(({ node_id }) => node_id).filter((one) => !stored_on.includes(one))
    const created = stored.some(({ received }) => received.created)
    const is_read_out = finished.every(isStored)
    return { answer: { id, meta: metaOf(put), created }, stored_on, failed, is_read_out }
  } catch (cause) {
    const left = await stores.abort(new Error("the put has failed"))
    await takeBack(parts, put, left)
    if (faultOf(cause)._tag === "BlobShardsFailed" && isOvertaken(left)) return undefined
    throw cause
  }
}

/**
 * What a put is answered whose blob is stored already: undefined where it is not. Its shards are
 * this put's from then on: a deletion before it, which some have not heard of, leaves them alone.
 */
const keep = async (
  parts: ErasureParts,
  { order, content: { id, checksum, size }, owners, at }: Put,
  held: Survey["held"],
): Promise<ErasurePut | undefined> => {
  const present = presentIn(held)
  if (present === undefined) return undefined
  const { policy, expected_id, if_none_match } = order
  const known = { policy: present.policy, checksum: present.checksum || checksum }
  const admission = admit({ id, checksum, policy, expected_id, if_none_match }, known)
  if (admission.verdict === "exists") {
    throw thrown({ _tag: "BlobAlreadyExists", id, detail: admission.detail })
  }
  const nodes = held.map(({ peer }) => peer)
  const renewed = await renewOn(parts, { id, size, put_at: at }, nodes)
  if (presentIn(renewed) === undefined) return undefined
  const stored_on = renewed.map(({ peer }) => peer.node_id)
  const failed = owners.map(({ node_id }) => node_id).filter((one) => !stored_on.includes(one))
  const meta = await metaOfShards(parts, held)
  return { answer: { id, meta, created: false }, stored_on, failed, is_read_out: true }
}

/**
 * The time of the put: after any deletion, whatever this node's clock says. Its last three digits
 * are this node's, since a shard is taken back by its time: two puts at once must differ in it.
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
  const time = least - (least % digits) + (place % digits)
  return time < least ? time + digits : time
}

const put = async (
  parts: ErasureParts,
  order: PutOrder,
  content: Content,
  at: bigint,
): Promise<ErasurePut> => {
  const { id, checksum } = content
  const data_shards = dataShardsOf(order.policy)
  if (data_shards === undefined) throw new Error(`${order.policy} is no erasure code`)
  const admission = admit({ ...order, id, checksum }, undefined)
  if (admission.verdict === "mismatch") {
    throw thrown({ _tag: "BlobIdMismatch", expected: admission.expected, actual: id })
  }
  for (let attempt = 1; attempt <= attempts_max; attempt++) {
    const owners = ownersOf(parts.members(), id, data_shards + parity_shards)
    const need = data_shards + parity_shards
    if (owners.length < need) {
      throw thrown({ _tag: "BlobTooFewNodes", have: owners.length, need })
    }
    const surveyed = await survey(parts, id, owners)
    const wanted = { order, content, data_shards, owners, at: timeOf(parts, at, surveyed) }
    const kept = await keep(parts, wanted, surveyed.held)
    // What was sent before may still be on its way to a node that was given up.
    const is_first = attempt === 1
    if (kept) return { ...kept, is_read_out: is_first }
    if (content.no_room) throw content.no_room.cause
    if (surveyed.stale.length > 0) await deleteStale(parts, id, surveyed)
    const stored = await store(parts, wanted, surveyed)
    // Where all was there by then, another put was quicker, and the blob is what that one said.
    if (stored && (stored.answer.created || !is_first)) {
      return { ...stored, is_read_out: is_first && stored.is_read_out }
    }
  }
  const detail = "Another put of the same bytes, or their deletion, was in the way: put them again."
  throw thrown({ _tag: "BlobUnreachable", detail })
}

/**
 * Puts an erasure coded blob. Answers once all but two of its owners, or more, have stored a shard
 * durably. Fails with BlobTooFewNodes; BlobShardsFailed, and BlobUnreachable where others were in
 * the way, and then nothing is left; with BlobAlreadyExists and BlobIdMismatch as any put.
 */
export const putErasure = async (
  parts: ErasureParts,
  order: PutOrder,
  source: ErasureSource,
  at: bigint,
): Promise<ErasurePut> => put(parts, order, await contentOf(parts, source), at)
