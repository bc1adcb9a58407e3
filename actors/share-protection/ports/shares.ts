/**
 * The port to the shared file system service: which shares there are, and a way to their files.
 *
 * Source: document 2 §1, §7 *_strategy_precondition; DECISIONS, document 2, backup create.
 */
import { Context, type Effect, type Stream } from "effect"
import type { Delegation } from "#actors/share-protection/ports/trusts.ts"
import type { JobId, ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import type {
  BackendUnavailable,
  NetworkStrategyPrecondition,
  SnapshotStrategyPrecondition,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"

export interface Share {
  readonly id: ShareId
  readonly project_id: ProjectId
  readonly name: string
  /** Its size as the service tells it: what is provisioned, or what is there, in bytes. */
  readonly size_bytes: number
  /** The service's own word; only an `available` share can be read. */
  readonly status: string
  readonly snapshot_support: boolean
  /** Whether a snapshot can be read as it is. */
  readonly mount_snapshot_support: boolean
  /** Whether a snapshot can be made a share, and that be read. */
  readonly create_share_from_snapshot_support: boolean
}

/** Files to back up, for one job. */
export interface Source {
  /** Absolute, on the machine that asked. */
  readonly path: string
  /** Whether they come from a snapshot, and not from the live share. */
  readonly crash_consistent: boolean
  /** Names what `release` lets go of: the job's id, which anybody may know. */
  readonly token: string
}

export interface SourceOptions {
  readonly job_id: JobId
  /** true: a snapshot or nothing; false: the live share; null: a snapshot where one can be had. */
  readonly crash_consistent: boolean | null
}

/** A share like another, to restore into. */
export interface NewShare {
  readonly job_id: JobId
  readonly like: Share
  readonly name: string
  /** In whose name: the tenant's, whose share it becomes. Asked for where that is needed. */
  readonly by: Effect.Effect<Delegation, TrustAccessDenied | BackendUnavailable>
}

export class Shares extends Context.Service<
  Shares,
  {
    /** undefined: there is none, or it is another project's. */
    readonly find: (
      project_id: ProjectId,
      share_id: ShareId,
    ) => Effect.Effect<Share | undefined, BackendUnavailable>
    /** Every share of every project, in no order. One that appears meanwhile may be missing. */
    readonly list: Stream.Stream<Share, BackendUnavailable>
    /** The same again for the same job, until it is released. */
    readonly prepare: (
      share: Share,
      wish: SourceOptions,
    ) => Effect.Effect<
      Source,
      SnapshotStrategyPrecondition | NetworkStrategyPrecondition | BackendUnavailable
    >
    /** Lets go of what was made for the job, if anything. */
    readonly release: (source: Pick<Source, "token">) => Effect.Effect<void, BackendUnavailable>
    /**
     * Makes an empty share, the same again for the same job. Until it is finished nobody can take
     * it for a whole one: its name says so, or it is no share yet.
     */
    readonly create: (
      project_id: ProjectId,
      share: NewShare,
    ) => Effect.Effect<
      { readonly share: Share; readonly path: string },
      NetworkStrategyPrecondition | TrustAccessDenied | BackendUnavailable
    >
    /** What `create` made has all that it is to have: it is a share as any other. Also twice. */
    readonly finish: (
      share: Share,
      made: Pick<NewShare, "job_id" | "name" | "by">,
    ) => Effect.Effect<void, TrustAccessDenied | BackendUnavailable>
    /** Where the live share can be written: absolute, on the machine that asked. */
    readonly pathOf: (
      share: Share,
    ) => Effect.Effect<string, NetworkStrategyPrecondition | BackendUnavailable>
  }
>()("actors/share-protection/Shares") {}
