/**
 * Shares: the port to the shared file system service, for its shares and their files.
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
  /** Size in bytes as the service reports it: provisioned or used. */
  readonly size_bytes: number
  /** The service's own status; only an `available` share can be read. */
  readonly status: string
  readonly snapshot_support: boolean
  /** Whether a snapshot can be mounted directly. */
  readonly mount_snapshot_support: boolean
  /** Whether a share can be created from a snapshot. */
  readonly create_share_from_snapshot_support: boolean
}

/** The files that a backup job reads. */
export interface Source {
  /** Absolute path on the calling machine. */
  readonly path: string
  /** Whether the files come from a snapshot rather than from the live share. */
  readonly crash_consistent: boolean
  /** Names the resources that `release` frees: the job's id, which is not secret. */
  readonly token: string
}

export interface SourceOptions {
  readonly job_id: JobId
  /** true: snapshot required; false: the live share; null: a snapshot if possible. */
  readonly crash_consistent: boolean | null
}

/** A new share to restore into, modeled on another. */
export interface NewShare {
  readonly job_id: JobId
  readonly like: Share
  readonly name: string
  /** The delegation of the tenant who will own the share; redeemed only if needed. */
  readonly by: Effect.Effect<Delegation, TrustAccessDenied | BackendUnavailable>
}

export class Shares extends Context.Service<
  Shares,
  {
    /** Undefined if there is none, or if it belongs to another project. */
    readonly find: (
      project_id: ProjectId,
      share_id: ShareId,
    ) => Effect.Effect<Share | undefined, BackendUnavailable>
    /** All shares of all projects, in no order. May miss shares created meanwhile. */
    readonly list: Stream.Stream<Share, BackendUnavailable>
    /** Prepares the source of a job. Idempotent for each job until it is released. */
    readonly prepare: (
      share: Share,
      options: SourceOptions,
    ) => Effect.Effect<
      Source,
      SnapshotStrategyPrecondition | NetworkStrategyPrecondition | BackendUnavailable
    >
    /** Frees the resources made for the job, if any. */
    readonly release: (source: Pick<Source, "token">) => Effect.Effect<void, BackendUnavailable>
    /**
     * Creates an empty share, idempotently for each job. Until `finish`, its name marks it as
     * incomplete, or it does not exist as a share yet.
     */
    readonly create: (
      project_id: ProjectId,
      share: NewShare,
    ) => Effect.Effect<
      { readonly share: Share; readonly path: string },
      NetworkStrategyPrecondition | TrustAccessDenied | BackendUnavailable
    >
    /** Turns the share that `create` made into a regular one. Idempotent. */
    readonly finish: (
      share: Share,
      made: Pick<NewShare, "job_id" | "name" | "by">,
    ) => Effect.Effect<void, TrustAccessDenied | BackendUnavailable>
    /** Absolute path of the writable live share on the calling machine. */
    readonly pathOf: (
      share: Share,
    ) => Effect.Effect<string, NetworkStrategyPrecondition | BackendUnavailable>
  }
>()("actors/share-protection/Shares") {}
