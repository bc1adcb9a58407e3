/**
 * Surveys the owners of a blob before a put: existing copies, deletions, and the shards left to
 * store.
 *
 * Source: document 1 §1, §7 ALREADY_EXISTS; DECISIONS, document 1, delete and replicas; decision
 * 0124.
 */

import type { Copy, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import type { Peer } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type ErasureParts, stall_ms, verifyMs } from "./layout.ts"
import { type Holder, readableCode } from "./search.ts"

export interface NodeCopy {
  readonly peer: Peer
  readonly copy: HeldCopy
}

export interface Survey {
  /** The owners that responded. */
  readonly responding: ReadonlyArray<Peer>
  /** Copies that no cluster-wide deletion covers, and nodes with a copy that one covers. */
  readonly held: ReadonlyArray<NodeCopy>
  readonly stale: ReadonlyArray<Peer>
  /** The latest deletion that any of them knows, in Unix nanoseconds, or -1. */
  readonly deleted_at: bigint
  /** The latest cluster-wide deletion. */
  readonly deleted_everywhere_at: bigint
}

/** Resolves with undefined if the promise takes longer than `ms`. */
export const withTimeout = <A>(
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
  const responses = [...copies]
  const deletions = responses.flatMap(([, copy]) => (copy?.kind === "tombstone" ? [copy] : []))
  const everywhere = deletions.filter(({ is_cluster_wide }) => is_cluster_wide)
  const deleted_everywhere_at = latest(everywhere.map(({ deleted_at }) => deleted_at))
  const all = responses.flatMap(([peer, copy]) =>
    copy === undefined || copy.kind === "tombstone" ? [] : [{ peer, copy }],
  )
  const isFresh = ({ copy }: NodeCopy) => copy.put_at > deleted_everywhere_at
  return {
    responding: responses.map(([peer]) => peer),
    held: all.filter(isFresh),
    stale: all.filter((one) => !isFresh(one)).map(({ peer }) => peer),
    deleted_at: latest(deletions.map(({ deleted_at }) => deleted_at)),
    deleted_everywhere_at,
  }
}

/** Queries all owners. An owner that does not respond within 5 seconds counts as unreachable. */
export const survey = async (
  parts: Pick<ErasureParts, "guard" | "peers" | "members" | "timing">,
  id: BlobId,
  owners: ReadonlyArray<Peer>,
): Promise<Survey> => {
  const { node_id } = parts.members()
  const responses = await Promise.all(
    owners.map((peer) => {
      const is_self = peer.node_id === node_id
      const request = is_self ? parts.guard.copiesOf([id]) : parts.peers.copiesOf(peer, [id])
      return withTimeout(parts, request).catch(() => undefined)
    }),
  )
  const copies = new Map<Peer, Copy | undefined>()
  for (const [at, peer] of owners.entries()) {
    const response = responses[at]
    if (response !== undefined) copies.set(peer, response[0])
  }
  return surveyOf(copies)
}

export const holdersOf = (held: ReadonlyArray<NodeCopy>): ReadonlyArray<Holder> =>
  held.flatMap(({ peer, copy }) =>
    copy.shard === undefined ? [] : [{ peer, copy, index: copy.shard.index }],
  )

/** A whole copy, or a shard if there are enough of them: then the blob is stored already. */
export const existingCopy = (held: ReadonlyArray<NodeCopy>): HeldCopy | undefined => {
  const whole = held.find(({ copy }) => copy.kind === "whole")
  if (whole) return whole.copy
  const data_shards = readableCode(holdersOf(held))
  if (data_shards === undefined) return undefined
  return held.find(({ copy }) => copy.shard?.data_shards === data_shards)?.copy
}

/** The put to which copies are renewed. */
export interface Renewal {
  readonly id: BlobId
  readonly size: number
  readonly put_at: bigint
}

/**
 * Renews the copies on these nodes to the put, so that no rollback removes them. Returns the copies
 * that were verified and renewed within the time that reading takes.
 */
export const renewOn = async (
  parts: Pick<ErasureParts, "guard" | "peers" | "members" | "timing">,
  { id, size, put_at }: Renewal,
  nodes: ReadonlyArray<Peer>,
): Promise<ReadonlyArray<NodeCopy>> => {
  const { guard, peers, members, timing } = parts
  const { node_id } = members()
  const ms = verifyMs(size)
  const renewed = await Promise.all(
    nodes.map((peer) => {
      const is_self = peer.node_id === node_id
      const renewing = is_self
        ? guard.renew(id, put_at, timing.now())
        : peers.renew(peer, id, put_at, ms)
      return withTimeout(parts, renewing, ms).catch(() => undefined)
    }),
  )
  return nodes.flatMap((peer, at) => {
    const copy = renewed[at]
    return copy === undefined ? [] : [{ peer, copy }]
  })
}

/** Sends the deletion to nodes that still have a deleted copy, because it excludes a shard. */
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
  // If this fails, the node refuses its shard.
  await withTimeout({ timing }, Promise.allSettled(deleting))
}
