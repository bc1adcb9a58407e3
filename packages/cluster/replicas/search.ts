/**
 * Finds a blob on other nodes: fetches from its owners one after the other, then queries all
 * others.
 *
 * Source: document 1 §1, §7 NOT_FOUND; DECISIONS, document 1, integrity.
 */

import type { BlobRange } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { Copy } from "#actors/blob-storage/ports/node-engine.ts"
import type { Fetched, Peer } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { withTimeout } from "../erasure/survey.ts"
import { isPeerFailure } from "../peer-failure.ts"
import { firstResponse } from "./hedge.ts"
import { type ClusterParts, idle_ms_max, othersFor } from "./parts.ts"

/** A node with the blob or a shard of it, and the response that it began to send. */
export interface Found {
  readonly peer: Peer
  readonly fetched: Fetched
}

/** Codes of a node that certainly has no intact copy. */
const absence_codes: ReadonlySet<string> = new Set(["NOT_FOUND", "DATA_LOSS"])

/** Number of owners from which the bytes are fetched directly; other nodes are queried first. */
const direct_fetches_max = nodes_needed.REPLICATION_POLICY_REPLICA3

/** Timeout for nodes without a recent heartbeat, in milliseconds. */
const overdue_timeout_ms = 1000

/** Ends a response that is not read. Its failures do not matter. */
export const discard = ({ fetched }: Found) => {
  fetched.bytes.return?.().catch(() => undefined)
}

/** Where a search starts, and which nodes it skips. */
export interface SearchOptions {
  readonly range: BlobRange
  /** The node that had it last. */
  readonly first?: Peer
  /** Nodes that failed or sent corrupt bytes. */
  readonly without: ReadonlySet<string>
}

/** The findings of one search. */
const makeFindings = () => {
  const unreachable: Array<string> = []
  const timed_out: Array<string> = []
  let deleted_at = -1n
  return {
    /** Nodes that did not respond. */
    unreachable,
    /** Nodes without a recent heartbeat that did not respond in time: they count as offline. */
    timed_out,
    note: (copy: Copy | undefined) => {
      if (copy?.kind !== "tombstone" || !copy.is_cluster_wide) return
      if (copy.deleted_at > deleted_at) deleted_at = copy.deleted_at
    },
    /** Records a failed request, unless the node certainly has no copy. */
    noteFailure: ({ node_id }: Peer, cause: unknown) => {
      if (!isPeerFailure(cause) || !absence_codes.has(cause.code)) unreachable.push(node_id)
    },
    /**
     * Whether a cluster-wide deletion covers this copy, though its node has not received it yet.
     */
    isDeleted: (put_at: bigint) => put_at <= deleted_at,
  }
}

/** The requests of one search. */
const makeQueries = (parts: ClusterParts, id: BlobId, range: BlobRange) => {
  const { peers } = parts
  const { unreachable, timed_out, note, noteFailure, isDeleted } = makeFindings()
  const { unheard = [] } = parts.members()

  /** Queries a node for its copy, with a short timeout if its heartbeat is overdue. */
  const lookUp = (peer: Peer) => {
    const lookup = peers.copiesOf(peer, [id])
    if (!unheard.includes(peer.node_id)) return lookup
    return withTimeout(parts, lookup, overdue_timeout_ms)
      .catch(() => undefined)
      .then((copies) => {
        if (copies === undefined) timed_out.push(peer.node_id)
        return copies ?? []
      })
  }

  const fetchFrom = async (peer: Peer): Promise<Found | undefined> => {
    try {
      const found = { peer, fetched: await peers.fetch(peer, id, range, idle_ms_max) }
      if (!isDeleted(found.fetched.copy.put_at)) return found
      discard(found)
    } catch (cause) {
      noteFailure(peer, cause)
    }
    return undefined
  }
  const probe = async (peer: Peer) => {
    try {
      const [copy] = await lookUp(peer)
      note(copy)
      if (copy === undefined || copy.kind === "tombstone") return undefined
    } catch (cause) {
      noteFailure(peer, cause)
      return undefined
    }
    return fetchFrom(peer)
  }
  /** Probes all nodes in parallel: each responds quickly, and few have the blob. */
  const probeAll = (all: ReadonlyArray<Peer>) =>
    new Promise<Found | undefined>((resolve) => {
      let left = all.length
      let is_found = false
      if (left === 0) resolve(undefined)
      for (const peer of all) {
        void probe(peer).then((found) => {
          left -= 1
          if (found !== undefined && is_found) discard(found)
          is_found ||= found !== undefined
          if (found !== undefined || left === 0) resolve(found)
        })
      }
    })
  return { unreachable, timed_out, note, fetchFrom, probeAll }
}

export const makeSearch = (parts: ClusterParts) => {
  const { local, members, timing } = parts
  /**
   * Finds a node with the blob, and begins to fetch the range from it. Returns undefined if every
   * node responded and none has it, and rejects with BlobUnreachable if some did not respond.
   */
  return async (
    id: BlobId,
    { range, first, without }: SearchOptions,
  ): Promise<Found | undefined> => {
    const { unreachable, timed_out, note, fetchFrom, probeAll } = makeQueries(parts, id, range)
    const [here] = await local.copiesOf([id])
    note(here)
    const others = othersFor(members(), id).filter(({ node_id }) => !without.has(node_id))
    const { offline = [], unheard = [] } = members()
    const responsive = others.filter(({ node_id }) => !unheard.includes(node_id))
    const near = responsive.slice(0, direct_fetches_max)
    const ordered = first === undefined || without.has(first.node_id) ? near : [first, ...near]
    const known = new Set(ordered)
    const far = others.filter((peer) => !known.has(peer))
    const attempts = [...ordered.map((peer) => () => fetchFrom(peer)), () => probeAll(far)]
    const found = await firstResponse<Found>(timing, attempts, discard)
    if (found === undefined && unreachable.length + without.size === 0 && timed_out.length > 0) {
      throw faultError({ _tag: "BlobNotFound", id, not_asked: [...offline, ...timed_out] })
    }
    if (found !== undefined || unreachable.length === 0) return found
    const nodes = unreachable.toSorted().join(", ")
    const detail = `No node that responded has the blob ${id}; no response from ${nodes}.`
    throw faultError({ _tag: "BlobUnreachable", detail })
  }
}

export type Search = ReturnType<typeof makeSearch>
