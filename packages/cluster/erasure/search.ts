/**
 * Finds the shards of a blob: queries this node and the owners first, then the other nodes.
 *
 * Source: document 1 §1; DECISIONS, document 1, delete and replicas; decision 0124.
 */

import type { Copy, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peer } from "#actors/blob-storage/ports/peers.ts"
import { owners_max } from "#placement"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeSignal, type Signal } from "../signal.ts"
import { type ErasureParts, hedge_ms, ownersOf, selfOf, stall_ms } from "./layout.ts"

/** Time to wait for more data shards once enough shards are known, in milliseconds. */
const grace_ms = 20

/** A node with a shard of a blob. */
export interface Holder {
  readonly peer: Peer
  readonly copy: HeldCopy
  readonly index: number
}

/** Whether these include enough distinct shards of one code to read the blob. */
export const isReadable = (holders: Iterable<Holder>, data_shards: number) => {
  const indexes = new Set<number>()
  for (const { copy, index } of holders) {
    if (copy.shard?.data_shards === data_shards) indexes.add(index)
  }
  return indexes.size >= data_shards
}

/** Whether all data shards are known, so that no unit must be reconstructed. */
const hasAllData = (holders: ReadonlyArray<Holder>, data_shards: number) =>
  isReadable(
    holders.filter(({ index }) => index < data_shards),
    data_shards,
  )

/** The number of data shards of a code that has enough known shards. */
export const readableCode = (holders: ReadonlyArray<Holder>): number | undefined =>
  holders
    .map(({ copy }) => copy.shard?.data_shards ?? 0)
    .find((data_shards) => isReadable(holders, data_shards))

/** The known shards of a blob. They grow as responses arrive. */
export interface Search {
  readonly holders: () => ReadonlyArray<Holder>
  /** Nodes that were queried and have not responded. */
  readonly unanswered: () => number
  /**
   * Queries the owners, then all others, until `isDone`. Returns false when all nodes have
   * responded or timed out. A slow node does not delay the queries to the others.
   */
  readonly runUntil: (isDone: (holders: ReadonlyArray<Holder>) => boolean) => Promise<boolean>
  /** Waits for pending responses, for at most `ms` milliseconds. */
  readonly settle: (ms: number) => Promise<void>
}

type Parts = Pick<ErasureParts, "local" | "peers" | "members" | "timing">

/** The nodes to query, in groups: this node and the owners, then the others. */
const queryOrder = (members: Members, id: BlobId): Array<ReadonlyArray<Peer>> => {
  const self = selfOf(members)
  const owners = ownersOf(members, id, owners_max).filter((peer) => peer.node_id !== self.node_id)
  const near = [self, ...owners]
  const known = new Set(near.map(({ node_id }) => node_id))
  const others = [...members.active, ...members.leaving].filter(
    ({ node_id }) => !known.has(node_id),
  )
  return [near, others]
}

/** Collects the reported shards, without those that a cluster-wide deletion covers. */
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

/** Queries nodes, except those whose shards are known. */
const makeQueries = (
  { local, peers, members }: Parts,
  id: BlobId,
  known: ReadonlyMap<string, HeldCopy>,
  signal: Signal,
) => {
  const { note, holders } = makeFindings()
  const now = members()
  const groups = queryOrder(now, id)
  let failed = 0
  let pending = 0
  for (const peer of groups.flat()) note(peer, known.get(peer.node_id))

  const query = async (peer: Peer) => {
    pending += 1
    try {
      const is_self = peer.node_id === now.node_id
      const [copy] = await (is_self ? local.copiesOf([id]) : peers.copiesOf(peer, [id]))
      note(peer, copy)
    } catch {
      // Any failure means that the node did not report its copy.
      failed += 1
    } finally {
      pending -= 1
      signal.notify()
    }
  }
  return {
    holders,
    unanswered: () => failed + pending,
    pending: () => pending,
    /** Queries the next group; false if there is none. */
    queryNext: () => {
      const next = groups.shift()
      for (const peer of next ?? []) if (!known.has(peer.node_id)) void query(peer)
      return next !== undefined
    },
  }
}

/** Searches for the shards of a blob; `known` are shards found before, by node. */
export const searchShards = (
  parts: Parts,
  id: BlobId,
  known: ReadonlyMap<string, HeldCopy>,
): Search => {
  const signal = makeSignal()
  const { holders, unanswered, pending, queryNext } = makeQueries(parts, id, known, signal)
  const waitAtMost = async (ms: number, late: () => void) => {
    const cancel = parts.timing.after(ms, () => {
      late()
      signal.notify()
    })
    await signal.wait()
    cancel()
  }
  return {
    holders,
    unanswered,
    runUntil: async (isDone) => {
      for (let waits = 0; waits * hedge_ms < stall_ms; ) {
        if (isDone(holders())) return true
        if (pending() === 0) {
          if (!queryNext()) return false
          continue
        }
        await waitAtMost(hedge_ms, () => {
          waits += 1
          queryNext()
        })
      }
      return isDone(holders())
    },
    settle: async (ms) => {
      let is_late = false
      while (!is_late && pending() > 0) {
        await waitAtMost(ms, () => {
          is_late = true
        })
      }
    },
  }
}

/**
 * Searches until the blob is readable. Returns its number of data shards, or undefined if not
 * enough shards were found.
 */
export const findReadable = async (search: Search): Promise<number | undefined> => {
  await search.runUntil((holders) => readableCode(holders) !== undefined)
  const found = readableCode(search.holders())
  if (found === undefined || hasAllData(search.holders(), found)) return found
  await search.settle(grace_ms)
  return readableCode(search.holders())
}
