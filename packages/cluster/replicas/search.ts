/**
 * Finding a blob on another node: its owners are asked for it, one after the other, and then all
 * others whether they have it.
 *
 * Source: document 1 §1, §7 NOT_FOUND; DECISIONS, document 1, integrity.
 */

import type { BlobRange } from "#actors/blob-storage/blobs/engine.ts"
import { thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { Copy } from "#actors/blob-storage/node-engine.ts"
import type { Fetched, Peer } from "#actors/blob-storage/peers.ts"
import { nodes_needed } from "#actors/blob-storage/replication.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { within } from "../erasure/survey.ts"
import { firstAnswer } from "../hedge.ts"
import { isPeerFailure } from "../peer-failure.ts"
import { type ClusterParts, othersFor, silence_ms_max } from "./parts.ts"

/** A node that has the blob or a shard of it, and what it began to send. */
export interface Met {
  readonly peer: Peer
  readonly fetched: Fetched
}

/** What a node says that is sure not to have it, or that has only a corrupt copy. */
const denials: ReadonlySet<string> = new Set(["NOT_FOUND", "DATA_LOSS"])

/** Owners of full copies are asked for the bytes at once; to the others one question goes first. */
const asked_at_once = nodes_needed.REPLICATION_POLICY_REPLICA3

/** How long a node is waited for that was not heard for long, in milliseconds. */
const unheard_ms_max = 1000

/** Gives back what nobody reads; whatever it was, nothing hangs on it. */
export const dropFetched = ({ fetched }: Met) => {
  fetched.bytes.return?.().catch(() => undefined)
}

/** Where a search begins and whom it leaves out. */
export interface Wish {
  readonly range: BlobRange
  /** The node that had it a moment ago. */
  readonly first?: Peer
  /** Nodes whose bytes were no good. */
  readonly without: ReadonlySet<string>
}

/** What one search learns on its way. */
const makeLearnt = () => {
  const silent: Array<string> = []
  const away: Array<string> = []
  let deleted_at = -1n
  return {
    /** Nodes that could not be asked. */
    silent,
    /** Those of them that were not heard for long, and count as offline. */
    away,
    learn: (copy: Copy | undefined) => {
      if (copy?.kind !== "tombstone" || !copy.is_cluster_wide) return
      if (copy.deleted_at > deleted_at) deleted_at = copy.deleted_at
    },
    /** A node gave nothing: that it has nothing, or that nobody knows. */
    miss: ({ node_id }: Peer, cause: unknown) => {
      if (!isPeerFailure(cause) || !denials.has(cause.code)) silent.push(node_id)
    },
    /** Whether every node was told to delete this copy, and its own has not heard of it. */
    isDeleted: (put_at: bigint) => put_at <= deleted_at,
  }
}

/** The questions of one search. */
const makeAsks = (parts: ClusterParts, id: BlobId, range: BlobRange) => {
  const { peers } = parts
  const { silent, away, learn, miss, isDeleted } = makeLearnt()
  const { unheard = [] } = parts.members()

  /** What a node has of it; it is not waited for long where it was not heard. */
  const haveOf = (peer: Peer) => {
    const asked = peers.have(peer, [id])
    if (!unheard.includes(peer.node_id)) return asked
    return within(parts, asked, unheard_ms_max)
      .catch(() => undefined)
      .then((copies) => {
        if (copies === undefined) away.push(peer.node_id)
        return copies ?? []
      })
  }

  const fetchFrom = async (peer: Peer): Promise<Met | undefined> => {
    try {
      const met = { peer, fetched: await peers.fetch(peer, id, range, silence_ms_max) }
      if (!isDeleted(met.fetched.copy.put_at)) return met
      dropFetched(met)
    } catch (cause) {
      miss(peer, cause)
    }
    return undefined
  }
  const askFirst = async (peer: Peer) => {
    try {
      const [copy] = await haveOf(peer)
      learn(copy)
      if (copy === undefined || copy.kind === "tombstone") return undefined
    } catch (cause) {
      miss(peer, cause)
      return undefined
    }
    return fetchFrom(peer)
  }
  /** All of them at once: each answers in a moment, and few have it. */
  const askAll = (all: ReadonlyArray<Peer>) =>
    new Promise<Met | undefined>((resolve) => {
      let left = all.length
      let is_met = false
      if (left === 0) resolve(undefined)
      for (const peer of all) {
        void askFirst(peer).then((met) => {
          left -= 1
          if (met !== undefined && is_met) dropFetched(met)
          is_met ||= met !== undefined
          if (met !== undefined || left === 0) resolve(met)
        })
      }
    })
  return { silent, away, learn, fetchFrom, askAll }
}

export const makeSearch = (parts: ClusterParts) => {
  const { local, members, timing } = parts
  /**
   * Someone who has the blob, and the bytes of the range as they begin to come; undefined where
   * every node was asked and has none. BlobUnreachable where some could not be asked.
   */
  return async (id: BlobId, { range, first, without }: Wish): Promise<Met | undefined> => {
    const { silent, away, learn, fetchFrom, askAll } = makeAsks(parts, id, range)
    const [here] = await local.copiesOf([id])
    learn(here)
    const others = othersFor(members(), id).filter(({ node_id }) => !without.has(node_id))
    const { offline = [], unheard = [] } = members()
    const heard = others.filter(({ node_id }) => !unheard.includes(node_id))
    const near = heard.slice(0, asked_at_once)
    const ordered = first === undefined || without.has(first.node_id) ? near : [first, ...near]
    const known = new Set(ordered)
    const far = others.filter((peer) => !known.has(peer))
    const asks = [...ordered.map((peer) => () => fetchFrom(peer)), () => askAll(far)]
    const met = await firstAnswer<Met>(timing, asks, dropFetched)
    if (met === undefined && silent.length + without.size === 0 && away.length > 0) {
      throw thrown({ _tag: "BlobNotFound", id, not_asked: [...offline, ...away] })
    }
    if (met !== undefined || silent.length === 0) return met
    const nodes = silent.toSorted().join(", ")
    const detail = `No node that answered has the blob ${id}; ${nodes} could not be asked.`
    throw thrown({ _tag: "BlobUnreachable", detail })
  }
}

export type Search = ReturnType<typeof makeSearch>
