/**
 * What the owners of a blob have of it before it is put: whether it is stored already, what a
 * deletion has overtaken, and which shards are left to store.
 *
 * Source: document 1 §1, §7 ALREADY_EXISTS; DECISIONS, document 1, delete and replicas; decision
 * 0124.
 */

import { store_origin } from "#actors/blob-storage/blobs/admission.ts"
import type { Copy, HeldCopy } from "#actors/blob-storage/node-engine.ts"
import type { Peer } from "#actors/blob-storage/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type ErasureParts, readingMs, stall_ms } from "./layout.ts"
import { type Holder, readableCode } from "./search.ts"

export interface HeldBy {
  readonly peer: Peer
  readonly copy: HeldCopy
}

export interface Survey {
  /** Those that have said what they have. */
  readonly answering: ReadonlyArray<Peer>
  /** Copies that no deletion for every node has overtaken, and who has one that it has. */
  readonly held: ReadonlyArray<HeldBy>
  readonly stale: ReadonlyArray<Peer>
  /** The last deletion that one of them knows of, in Unix nanoseconds, or -1. */
  readonly deleted_at: bigint
  /** The last one by which every node was meant. */
  readonly deleted_everywhere_at: bigint
}

/** `undefined` where it takes longer than others are to wait. */
export const within = <A>(
  { timing }: Pick<ErasureParts, "timing">,
  promise: Promise<A>,
  ms = stall_ms,
) =>
  new Promise<A | undefined>((resolve, reject) => {
    const cancel = timing.after(ms, () => resolve(undefined))
    promise.finally(cancel).then(resolve, reject)
  })

const latest = (times: ReadonlyArray<bigint>) => {
  let last = -1n
  for (const time of times) if (time > last) last = time
  return last
}

const surveyOf = (copies: ReadonlyMap<Peer, Copy | undefined>): Survey => {
  const said = [...copies]
  const deletions = said.flatMap(([, copy]) => (copy?.kind === "tombstone" ? [copy] : []))
  const everywhere = deletions.filter(({ is_cluster_wide }) => is_cluster_wide)
  const deleted_everywhere_at = latest(everywhere.map(({ deleted_at }) => deleted_at))
  const all = said.flatMap(([peer, copy]) =>
    copy === undefined || copy.kind === "tombstone" ? [] : [{ peer, copy }],
  )
  const isFresh = ({ copy }: HeldBy) => copy.put_at > deleted_everywhere_at
  return {
    answering: said.map(([peer]) => peer),
    held: all.filter(isFresh),
    stale: all.filter((one) => !isFresh(one)).map(({ peer }) => peer),
    deleted_at: latest(deletions.map(({ deleted_at }) => deleted_at)),
    deleted_everywhere_at,
  }
}

/** Asks all of them; who does not say within 5 seconds counts as one that cannot be reached. */
export const survey = async (
  parts: Pick<ErasureParts, "guard" | "peers" | "members" | "timing">,
  id: BlobId,
  owners: ReadonlyArray<Peer>,
): Promise<Survey> => {
  const { node_id } = parts.members()
  const said = await Promise.all(
    owners.map((peer) => {
      const is_self = peer.node_id === node_id
      const asking = is_self ? parts.guard.copiesOf([id]) : parts.peers.have(peer, [id])
      return within(parts, asking).catch(() => undefined)
    }),
  )
  const copies = new Map<Peer, Copy | undefined>()
  for (const [at, peer] of owners.entries()) {
    const answer = said[at]
    if (answer !== undefined) copies.set(peer, answer[0])
  }
  return surveyOf(copies)
}

export const holdersOf = (held: ReadonlyArray<HeldBy>): ReadonlyArray<Holder> =>
  held.flatMap(({ peer, copy }) =>
    copy.shard === undefined ? [] : [{ peer, copy, index: copy.shard.index }],
  )

/** A copy of the whole, or one of the shards where they are enough: the blob is stored already. */
export const presentIn = (held: ReadonlyArray<HeldBy>): HeldCopy | undefined => {
  const whole = held.find(({ copy }) => copy.kind === "whole")
  if (whole) return whole.copy
  const data_shards = readableCode(holdersOf(held))
  if (data_shards === undefined) return undefined
  return held.find(({ copy }) => copy.shard?.data_shards === data_shards)?.copy
}

/** The put that copies are to be of: its blob, with its size in bytes, and its time. */
export interface Renewing {
  readonly id: BlobId
  readonly size: number
  readonly put_at: bigint
}

/**
 * Makes what these have copies of that put, and answers what each has then, read and sound; who
 * does not say in the time that reading takes is not among them. Nobody takes back what a put
 * counts on.
 */
export const renewOn = async (
  parts: Pick<ErasureParts, "guard" | "peers" | "members" | "timing">,
  { id, size, put_at }: Renewing,
  nodes: ReadonlyArray<Peer>,
): Promise<ReadonlyArray<HeldBy>> => {
  const { guard, peers, members, timing } = parts
  const { node_id } = members()
  const ms = readingMs(size)
  const renewed = await Promise.all(
    nodes.map((peer) => {
      const is_self = peer.node_id === node_id
      const renewing = is_self
        ? guard.renew(id, put_at, timing.now())
        : peers.renew(peer, id, put_at, ms)
      return within(parts, renewing, ms).catch(() => undefined)
    }),
  )
  return nodes.flatMap((peer, at) => {
    const copy = renewed[at]
    return copy === undefined ? [] : [{ peer, copy }]
  })
}

/** Tells who has a copy that was deleted everywhere that it was: no shard fits beside it. */
export const deleteStale = async (
  { local, peers, members, timing }: Pick<ErasureParts, "local" | "peers" | "members" | "timing">,
  id: BlobId,
  { stale, deleted_everywhere_at }: Survey,
) => {
  const { node_id } = members()
  const deleting = stale.map((peer) =>
    peer.node_id === node_id
      ? local.deleteClusterWide(id, store_origin, deleted_everywhere_at)
      : peers.deleteClusterWide(peer, id, store_origin, deleted_everywhere_at),
  )
  // Where it does not succeed, the node refuses its shard.
  await within({ timing }, Promise.allSettled(deleting))
}
