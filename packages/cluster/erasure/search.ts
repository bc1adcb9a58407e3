/**
 * Who has the shards of a blob: this node and the others are asked, the owners first.
 *
 * Source: document 1 §1; DECISIONS, document 1, delete and replicas; decision 0124.
 */

import type { Copy, HeldCopy } from "#actors/blob-storage/node-engine.ts"
import type { Members, Peer } from "#actors/blob-storage/peers.ts"
import { owners_max } from "#actors/blob-storage/placement.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type Bell, makeBell } from "../bell.ts"
import { type ErasureParts, hedge_ms, ownersOf, selfOf, stall_ms } from "./layout.ts"

/** How long shards of data are waited for where enough others are known, in milliseconds. */
const grace_ms = 20

/** A node that has a shard of a blob. */
export interface Holder {
  readonly peer: Peer
  readonly copy: HeldCopy
  readonly index: number
}

/** Whether these are a blob's shards of one code, as many distinct ones as it takes to read it. */
export const isReadable = (holders: Iterable<Holder>, data_shards: number) => {
  const indexes = new Set<number>()
  for (const { copy, index } of holders) {
    if (copy.shard?.data_shards === data_shards) indexes.add(index)
  }
  return indexes.size >= data_shards
}

/** Whether all shards of data are known: then nothing has to be made of parity. */
const hasAllData = (holders: ReadonlyArray<Holder>, data_shards: number) =>
  isReadable(
    holders.filter(({ index }) => index < data_shards),
    data_shards,
  )

/** The code of which enough shards are known. */
export const readableCode = (holders: ReadonlyArray<Holder>): number | undefined =>
  holders
    .map(({ copy }) => copy.shard?.data_shards ?? 0)
    .find((data_shards) => isReadable(holders, data_shards))

/** What is known of who has a blob's shards: it grows while answers come. */
export interface Search {
  readonly holders: () => ReadonlyArray<Holder>
  /** Nodes that were asked and did not say. */
  readonly unanswered: () => number
  /**
   * Asks the owners, and then all others, until `isDone`; false where everybody has said what there
   * is, or says nothing. A node that is slow does not hold up that the others are asked.
   */
  readonly until: (isDone: (holders: ReadonlyArray<Holder>) => boolean) => Promise<boolean>
  /** Waits for the answers that are still to come, but no longer than so many milliseconds. */
  readonly settle: (ms: number) => Promise<void>
}

type Parts = Pick<ErasureParts, "local" | "peers" | "members" | "timing">

/** Everybody who may have something: this node and the owners, then the others. */
const everybody = (members: Members, id: BlobId): Array<ReadonlyArray<Peer>> => {
  const self = selfOf(members)
  const owners = ownersOf(members, id, owners_max).filter((peer) => peer.node_id !== self.node_id)
  const near = [self, ...owners]
  const known = new Set(near.map(({ node_id }) => node_id))
  const others = [...members.active, ...members.leaving].filter(
    ({ node_id }) => !known.has(node_id),
  )
  return [near, others]
}

/** Shards as they are told of; those that a deletion for every node has overtaken are none. */
const makeFindings = () => {
  const shards = new Map<string, Holder>()
  let deleted_at = -1n
  return {
    note: (peer: Peer, copy: Copy | undefined) => {
      if (copy?.kind === "tombstone" && copy.is_cluster_wide && copy.deleted_at > deleted_at) {
        deleted_at = copy.deleted_at
      }
      if (copy?.kind !== "shard" || copy.shard === undefined) return
      shards.set(peer.node_id, { peer, copy, index: copy.shard.index })
    },
    holders: () =>
      shards
        .values()
        .filter(({ copy }) => copy.put_at > deleted_at)
        .toArray(),
  }
}

/** Asks nodes what they have, those that are known already excepted. */
const makeAsking = (
  { local, peers, members }: Parts,
  id: BlobId,
  known: ReadonlyMap<string, HeldCopy>,
  bell: Bell,
) => {
  const { note, holders } = makeFindings()
  const now = members()
  const rings = everybody(now, id)
  let failed = 0
  let pending = 0
  for (const peer of rings.flat()) note(peer, known.get(peer.node_id))

  const ask = async (peer: Peer) => {
    pending += 1
    try {
      const is_self = peer.node_id === now.node_id
      const [copy] = await (is_self ? local.copiesOf([id]) : peers.have(peer, [id]))
      note(peer, copy)
    } catch {
      // Whatever it was: the node did not say what it has.
      failed += 1
    } finally {
      pending -= 1
      bell.ring()
    }
  }
  return {
    holders,
    unanswered: () => failed + pending,
    pending: () => pending,
    /** Asks the next ones; false where all have been asked. */
    askNext: () => {
      const next = rings.shift()
      for (const peer of next ?? []) if (!known.has(peer.node_id)) void ask(peer)
      return next !== undefined
    },
  }
}

/** Looks for the shards of a blob; `known` is what was met before, by node. */
export const searchShards = (
  parts: Parts,
  id: BlobId,
  known: ReadonlyMap<string, HeldCopy>,
): Search => {
  const bell = makeBell()
  const { holders, unanswered, pending, askNext } = makeAsking(parts, id, known, bell)
  const heardWithin = async (ms: number, late: () => void) => {
    const cancel = parts.timing.after(ms, () => {
      late()
      bell.ring()
    })
    await bell.heard()
    cancel()
  }
  return {
    holders,
    unanswered,
    until: async (isDone) => {
      for (let waits = 0; waits * hedge_ms < stall_ms; ) {
        if (isDone(holders())) return true
        if (pending() === 0) {
          if (!askNext()) return false
          continue
        }
        await heardWithin(hedge_ms, () => {
          waits += 1
          askNext()
        })
      }
      return isDone(holders())
    },
    settle: async (ms) => {
      let is_late = false
      while (!is_late && pending() > 0) {
        await heardWithin(ms, () => {
          is_late = true
        })
      }
    },
  }
}

/**
 * Looks until a blob can be read: answers the data shards of its code, or undefined where all nodes
 * together are not known to have enough.
 */
export const findReadable = async (search: Search): Promise<number | undefined> => {
  await search.until((holders) => readableCode(holders) !== undefined)
  const found = readableCode(search.holders())
  if (found === undefined || hasAllData(search.holders(), found)) return found
  await search.settle(grace_ms)
  return readableCode(search.holders())
}
