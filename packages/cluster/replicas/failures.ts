/** Copies that other nodes could not take: counted, hinted at, and said once a minute at most. */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { ClusterParts } from "./parts.ts"

/** Between two warnings, in nanoseconds. */
const quiet_ns = 60_000_000_000n

/** A node that could not take its copy, or learn of a deletion. */
export interface Failed {
  readonly node_id: string
  readonly detail: string
}

export interface Failures {
  /**
   * A put has no copy or shard on `nodes`, which failed or would not have it: the repair looks at
   * it. Only the failures are counted.
   */
  readonly unreplicated: (
    id: BlobId,
    nodes: ReadonlyArray<string>,
    failed: ReadonlyArray<Failed>,
  ) => void
  /** Nodes that a cluster-wide deletion did not reach: they learn of it when they are back. */
  readonly undeleted: (failed: ReadonlyArray<Failed>) => void
  /** Copies and shards that could not be made since the start. */
  readonly count: () => number
}

export const makeFailures = ({ timing, report, hint }: ClusterParts): Failures => {
  let count = 0
  let unsaid = 0
  let said_at: bigint | undefined

  const say = (failed: ReadonlyArray<Failed>) => {
    unsaid += failed.length
    const now = timing.now()
    const last = failed.at(-1)
    // A clock that was set back must not silence it for longer.
    const is_quiet = said_at !== undefined && now >= said_at && now - said_at < quiet_ns
    if (last === undefined || is_quiet) return
    const what = `${unsaid} copies or deletions failed on other nodes and are made later`
    report(`${what}; the last on ${last.node_id}: ${last.detail}`)
    unsaid = 0
    said_at = now
  }
  return {
    unreplicated: (id, nodes, failed) => {
      if (nodes.length > 0) hint({ id, why: "replication", nodes })
      count += failed.length
      say(failed)
    },
    undeleted: say,
    count: () => count,
  }
}

/** Why a node did not do it, in a sentence. */
export const failedOn = (node_id: string, cause: unknown): Failed => ({
  node_id,
  detail: causeText(cause),
})
