/**
 * How far a node's repair is: what `GET /v1/cluster/metrics` shows of it, and what its heartbeat
 * tells the others. Source: DECISIONS, document 1, `GET /v1/cluster/metrics`; decision 0125.
 */

/** One walk over all that a node has. */
export interface SweepResult {
  readonly ring_version: number
  readonly is_leaving: boolean
  /** Everybody answered, nothing failed, and the ring stayed as it was. */
  readonly is_complete: boolean
  /** Things that were begun, whether or not they could be done. */
  readonly acts: number
  /** Blobs of which an owner has no copy, and this node could not make it so. */
  readonly lacking: number
  /** Copies here that have their place elsewhere. */
  readonly displaced: number
  /** Blobs that were too young to say anything of them. */
  readonly early: number
}

/** Of this process, since it began. */
export interface RepairProgress {
  /** Copies here that have their place elsewhere; of a leaving node at least 1 until it is done. */
  readonly pending_migrations: number
  /** Bytes of copies that other nodes took from this one. */
  readonly bytes_moved: number
  /** Copies and shards that were missing, and which this node made or gave. */
  readonly repairs: number
  /** Things that could not be done when they were tried. */
  readonly failures: number
  readonly last_sweep: SweepResult | undefined
  /** The version of the ring that the last complete sweep was made by. */
  readonly checked_ring: number | undefined
  /** Blobs that lack copies, by the last two complete sweeps; undefined before there was one. */
  readonly under_replicated: number | undefined
}

/** What the last complete sweep found; undefined before there was one. */
export const checkedOf = ({ checked_ring, under_replicated }: RepairProgress) =>
  checked_ring === undefined || under_replicated === undefined
    ? undefined
    : { ring_version: checked_ring, under_replicated }

/** What a heartbeat tells of it. */
export interface NodeProgress {
  readonly pending_migrations: bigint
  readonly bytes_moved: bigint
  readonly repairs: bigint
  readonly replication_failures: bigint
  /** Blobs that it found to lack copies. */
  readonly under_replicated: bigint
}

export const no_progress: NodeProgress = {
  pending_migrations: 0n,
  bytes_moved: 0n,
  repairs: 0n,
  replication_failures: 0n,
  under_replicated: 0n,
}

/** A node's progress for its heartbeat, with the failures of its own puts. */
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
