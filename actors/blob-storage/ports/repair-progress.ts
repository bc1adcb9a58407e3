/**
 * The progress of a node's repair, for `GET /v1/cluster/metrics` and for heartbeats. Source:
 * DECISIONS, document 1, `GET /v1/cluster/metrics`; decision 0125.
 */

/** The result of one sweep over all copies of a node. */
export interface SweepResult {
  readonly ring_version: number
  readonly is_leaving: boolean
  /** Whether every node responded, nothing failed, and the ring did not change. */
  readonly is_complete: boolean
  /** Number of repairs that were started, successful or not. */
  readonly actions: number
  /** Number of blobs for which an owner still lacks its copy. */
  readonly missing: number
  /** Number of local copies that belong on other nodes. */
  readonly misplaced: number
  /** Number of blobs that were too new to judge. */
  readonly too_new: number
}

/** Counters since this process started. */
export interface RepairProgress {
  /** Local copies that belong on other nodes; at least 1 on a leaving node until it is done. */
  readonly pending_migrations: number
  /** Bytes of copies that other nodes accepted from this one. */
  readonly bytes_moved: number
  /** Missing copies and shards that this node restored here or elsewhere. */
  readonly repairs: number
  /** Number of failed attempts. */
  readonly failures: number
  readonly last_sweep: SweepResult | undefined
  /** The ring version of the last complete sweep. */
  readonly checked_ring: number | undefined
  /**
   * Blobs that lack copies according to the last two complete sweeps; undefined before the first.
   */
  readonly under_replicated: number | undefined
}

/** The findings of the last complete sweep; undefined before the first. */
export const findingsOf = ({ checked_ring, under_replicated }: RepairProgress) =>
  checked_ring === undefined || under_replicated === undefined
    ? undefined
    : { ring_version: checked_ring, under_replicated }

/** The part of the progress that heartbeats carry. */
export interface NodeProgress {
  readonly pending_migrations: bigint
  readonly bytes_moved: bigint
  readonly repairs: bigint
  readonly replication_failures: bigint
  /** Number of blobs that lack copies. */
  readonly under_replicated: bigint
}

export const no_progress: NodeProgress = {
  pending_migrations: 0n,
  bytes_moved: 0n,
  repairs: 0n,
  replication_failures: 0n,
  under_replicated: 0n,
}

/** A node's progress for its heartbeat, including the failures of its own puts. */
export const progressOf = (
  { pending_migrations, bytes_moved, repairs, under_replicated = 0 }: RepairProgress,
  { replication_failures }: { readonly replication_failures: number },
): NodeProgress => ({
  pending_migrations: BigInt(pending_migrations),
  bytes_moved: BigInt(bytes_moved),
  repairs: BigInt(repairs),
  replication_failures: BigInt(replication_failures),
  under_replicated: BigInt(under_replicated),
})
