/**
 * Counts copies that other nodes failed to store, hints them to the repair, and warns at most once
 * a minute.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { ClusterParts } from "./parts.ts"

/** Minimum time between warnings, in nanoseconds. */
const warning_interval_ns = 60_000_000_000n

/** A copy or deletion that failed on a node. */
export interface CopyFailure {
  readonly node_id: string
  readonly detail: string
}

export interface Failures {
  /**
   * A put has no copy or shard on `nodes`, which failed or refused it: hints the blob to the
   * repair. Only `failed` is counted.
   */
  readonly unreplicated: (
    id: BlobId,
    nodes: ReadonlyArray<string>,
    failed: ReadonlyArray<CopyFailure>,
  ) => void
  /**
   * Cluster-wide deletions that did not reach these nodes. The nodes receive them when they are
   * back online.
   */
  readonly undeleted: (failed: ReadonlyArray<CopyFailure>) => void
  /** Failed copies and shards since startup. */
  readonly count: () => number
}

export const makeFailures = ({ timing, report, hint }: ClusterParts): Failures => {
  let count = 0
  let unreported = 0
  let warned_at: bigint | undefined

  const warn = (failed: ReadonlyArray<CopyFailure>) => {
    unreported += failed.length
    const now = timing.now()
    const last = failed.at(-1)
    // A clock that was set back must not silence the warnings for longer.
    const is_rate_limited =
      warned_at !== undefined && now >= warned_at && now - warned_at < warning_interval_ns
    if (last === undefined || is_rate_limited) return
    const what = `${unreported} copies or deletions failed on other nodes and will be repaired`
    report(`${what}; the last on ${last.node_id}: ${last.detail}`)
    unreported = 0
    warned_at = now
  }
  return {
    unreplicated: (id, nodes, failed) => {
      if (nodes.length > 0) hint({ id, why: "replication", nodes })
      count += failed.length
      warn(failed)
    },
    undeleted: warn,
    count: () => count,
  }
}

/** The failure of a node, with its cause as text. */
export const failureOn = (node_id: string, cause: unknown): CopyFailure => ({
  node_id,
  detail: causeText(cause),
})
