/**
 * What the plans of the repair are made of: who said what of a blob, what can be done for it, and
 * whose turn it is. Pure.
 *
 * Source: DECISIONS, document 1, graceful leave, delete and replicas; decision 0125.
 */

import type { Copy, HeldCopy } from "#actors/blob-storage/node-engine.ts"
import { owners_max } from "#actors/blob-storage/placement.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

const second_ns = 1_000_000_000n

/** A put that came less long ago may still be storing its other copies. */
export const settle_ns = 10n * second_ns

/** What each node said of the blob, this one too; who is not in it did not say anything. */
export type Answers = ReadonlyMap<string, Copy | undefined>

/** The cluster as a plan sees it. */
export interface RepairView {
  readonly node_id: string
  readonly active: ReadonlyArray<string>
  readonly leaving: ReadonlyArray<string>
  readonly is_leaving: boolean
  /** The first `count` active owners of a blob, at most ten. */
  readonly ownersOf: (id: BlobId, count: number) => ReadonlyArray<string>
  /** Unix nanoseconds, by this node's clock. */
  readonly now: bigint
  /** The sweep's number since the ring changed, from 1; 0: something hinted at this very blob. */
  readonly round: number
  /** Since when no node is away that may have copies; undefined: one may be. */
  readonly whole_since: bigint | undefined
  /** So long a copy stays that is nobody's any more, in nanoseconds. */
  readonly release_after_ns: bigint
}

export interface MissingShard {
  readonly index: number
  readonly node_id: string
}

export type Act =
  /** Sends the copy that is here. */
  | { readonly act: "push"; readonly to: string; readonly is_migration: boolean }
  /** Has the copy there take over the time of the last put. */
  | { readonly act: "renew"; readonly node_id: string; readonly put_at: bigint }
  /** Makes one or two shards of those that there are. */
  | { readonly act: "rebuild"; readonly missing: ReadonlyArray<MissingShard> }
  /** Gets a whole copy from the first of these that gives it. */
  | { readonly act: "pull"; readonly from: ReadonlyArray<string> }
  /**
   * Lets go what is here, once each of these has said that it keeps its own; `is_last`, where the
   * blob is lost if one of them is not sound.
   */
  | {
      readonly act: "release"
      readonly stored_at: bigint
      readonly keepers: ReadonlyArray<string>
      readonly is_last: boolean
    }
  /** Lets a shard go that no put finished. */
  | { readonly act: "forsake"; readonly stored_at: bigint }
  /** Deletes what is here, because every node was meant. */
  | { readonly act: "delete"; readonly deleted_at: bigint }

export interface Plan {
  readonly acts: ReadonlyArray<Act>
  /** Copies that owners do not have, and could have. */
  readonly gaps: number
  /** What is here has its place elsewhere. */
  readonly is_displaced: boolean
  /** Everybody who matters has said what it has. */
  readonly is_known: boolean
  /** A put may still be at work on it: nothing is said of it yet. */
  readonly is_early: boolean
}

/** Nothing is to be done, and nothing is wrong. */
export const nothing: Plan = {
  acts: [],
  gaps: 0,
  is_displaced: false,
  is_known: true,
  is_early: false,
}

export type Standing = "whole" | "shard" | "older" | "empty" | "refuses" | "unknown"

/**
 * What a node is to a blob that was put last at that time. A copy of an older put has the same
 * bytes, but a deletion in between may be on its way to it: nobody relies on that until it has
 * taken over the later put's time.
 */
export const standingOf = (answers: Answers, node_id: string, put_at: bigint): Standing => {
  if (!answers.has(node_id)) return "unknown"
  const copy = answers.get(node_id)
  if (copy === undefined) return "empty"
  if (copy.kind !== "tombstone") return copy.put_at < put_at ? "older" : copy.kind
  return (copy.refuses_until ?? copy.deleted_at) >= put_at ? "refuses" : "empty"
}

/**
 * Whose turn it is of those that could do the same. The first acts in each sweep, the second in
 * each other, and so on: when the first cannot, somebody does, and rarely two at once.
 */
export const isTurn = (round: number, rank: number) => rank >= 0 && round % (rank + 1) === 0

/** Whether a put may still be at work on it. */
export const isSettling = ({ now, round, is_leaving }: RepairView, { stored_at }: HeldCopy) => {
  // A clock that was set back far says nothing of it.
  const age = now - stored_at
  return round > 0 && !is_leaving && age > -settle_ns && age < settle_ns
}

/** Whether a copy that is nobody's has been here for long: a put may have had it here. */
export const isReleasable = ({ now, release_after_ns }: RepairView, { stored_at }: HeldCopy) =>
  now - stored_at >= release_after_ns

/**
 * The nodes that are to have the blob: the first `count` that do not refuse it. Who was told to
 * delete it gets it back by a newer put alone, and the next one stands in.
 */
export const takersOf = (
  view: RepairView,
  answers: Answers,
  { id, put_at }: HeldCopy,
  count: number,
) =>
  view
    .ownersOf(id, owners_max)
    .filter((owner) => standingOf(answers, owner, put_at) !== "refuses")
    .slice(0, count)

/** These take over the time of the last put: copies of older ones. */
export const renewals = (nodes: ReadonlyArray<string>, { put_at }: HeldCopy) =>
  nodes.map((node_id): Act => ({ act: "renew", node_id, put_at }))

export const early: Plan = { ...nothing, is_early: true }
