/**
 * Input and output types of repair plans, and the rules that all plans share. Pure.
 *
 * Source: DECISIONS, document 1, graceful leave, delete and replicas; decision 0125.
 */

import type { Copy, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { owners_max } from "#placement"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

const second_ns = 1_000_000_000n

/** A put within this time may still be storing its other copies. */
export const settle_ns = 10n * second_ns

/** The copy that each node reported, including this one. Nodes that did not respond are missing. */
export type Responses = ReadonlyMap<string, Copy | undefined>

/** The cluster as seen by a plan. */
export interface RepairView {
  readonly node_id: string
  readonly active: ReadonlyArray<string>
  readonly leaving: ReadonlyArray<string>
  readonly is_leaving: boolean
  /** The first `count` active owners of a blob, at most ten. */
  readonly ownersOf: (id: BlobId, count: number) => ReadonlyArray<string>
  /** The current time in Unix nanoseconds, by this node's clock. */
  readonly now: bigint
  /** The number of the sweep since the last ring change, from 1; 0 for a hinted blob. */
  readonly sweep_number: number
  /**
   * Time since which every node that may have copies has been online; undefined if one may be
   * offline.
   */
  readonly all_online_since: bigint | undefined
  /** Age at which a misplaced copy may be released, in nanoseconds. */
  readonly release_after_ns: bigint
}

export interface MissingShard {
  readonly index: number
  readonly node_id: string
}

export type Action =
  /** Sends the local copy. */
  | { readonly kind: "push"; readonly to: string; readonly is_migration: boolean }
  /** Renews the copy on that node to the last put. */
  | { readonly kind: "renew"; readonly node_id: string; readonly put_at: bigint }
  /** Rebuilds one or two shards from the others. */
  | { readonly kind: "rebuild"; readonly missing: ReadonlyArray<MissingShard> }
  /** Fetches a whole copy from the first of these nodes that sends it. */
  | { readonly kind: "pull"; readonly from: ReadonlyArray<string> }
  /**
   * Releases the local copy after each keeper has confirmed that it keeps its own. With `is_last`,
   * the blob would be lost if a keeper's copy were corrupt.
   */
  | {
      readonly kind: "release"
      readonly stored_at: bigint
      readonly keepers: ReadonlyArray<string>
      readonly is_last: boolean
    }
  /** Discards a shard of an unfinished put. */
  | { readonly kind: "discard"; readonly stored_at: bigint }
  /** Applies a cluster-wide deletion to the local copy. */
  | { readonly kind: "delete"; readonly deleted_at: bigint }

export interface Plan {
  readonly actions: ReadonlyArray<Action>
  /** Copies that owners lack and could store. */
  readonly gaps: number
  /** The local copy belongs elsewhere. */
  readonly is_displaced: boolean
  /** All nodes that matter have responded. */
  readonly is_known: boolean
  /** A put may still be storing it. */
  readonly is_early: boolean
}

/** Nothing to do. */
export const nothing: Plan = {
  actions: [],
  gaps: 0,
  is_displaced: false,
  is_known: true,
  is_early: false,
}

export type CopyState = "whole" | "shard" | "older" | "empty" | "refuses" | "unknown"

/**
 * The state of a node's copy of a blob that was last put at `put_at`. A copy of an older put has
 * the same bytes, but a deletion between the puts may be in transit to it, so it does not count
 * until it is renewed.
 */
export const copyStateOf = (responses: Responses, node_id: string, put_at: bigint): CopyState => {
  if (!responses.has(node_id)) return "unknown"
  const copy = responses.get(node_id)
  if (copy === undefined) return "empty"
  if (copy.kind !== "tombstone") return copy.put_at < put_at ? "older" : copy.kind
  return (copy.refuses_until ?? copy.deleted_at) >= put_at ? "refuses" : "empty"
}

/**
 * Whether it is this node's turn among those that could act. The first acts in each sweep, the
 * second in every second one, and so on: if the first cannot act, another does, and two rarely act
 * at once.
 */
export const isTurn = (sweep_number: number, rank: number) =>
  rank >= 0 && sweep_number % (rank + 1) === 0

/** Whether a put may still be storing it. */
export const isSettling = (
  { now, sweep_number, is_leaving }: RepairView,
  { stored_at }: HeldCopy,
) => {
  // After a large clock change the age is unknown.
  const age = now - stored_at
  return sweep_number > 0 && !is_leaving && age > -settle_ns && age < settle_ns
}

/** Whether a misplaced copy is old enough to be released. */
export const isReleasable = ({ now, release_after_ns }: RepairView, { stored_at }: HeldCopy) =>
  now - stored_at >= release_after_ns

/**
 * The nodes that should have the blob: the first `count` owners that do not refuse it. A node with
 * a deletion accepts it again only from a later put; the next owner replaces it.
 */
export const acceptingOwners = (
  view: RepairView,
  responses: Responses,
  { id, put_at }: HeldCopy,
  count: number,
) =>
  view
    .ownersOf(id, owners_max)
    .filter((owner) => copyStateOf(responses, owner, put_at) !== "refuses")
    .slice(0, count)

/** Renews the copies of older puts to the last put. */
export const renewals = (nodes: ReadonlyArray<string>, { put_at }: HeldCopy) =>
  nodes.map((node_id): Action => ({ kind: "renew", node_id, put_at }))

export const early: Plan = { ...nothing, is_early: true }
