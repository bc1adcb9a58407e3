/**
 * Engine: the port to the backup engine, which keeps snapshots of folders in a repository.
 *
 * Its guarantees are those that restic can give. Callers must hold the repository's lease in the
 * mode of `lease_modes`; the engine's own lock is only a second safeguard.
 *
 * Source: document 2 §1, §7 svc.engine_error; DECISIONS, document 2, engine, FIPS profile.
 */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import type {
  NotFound,
  RepositoryLocked,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"

export interface Repository extends Bucket {
  readonly password: Redacted.Redacted<string>
}

/**
 * The engine failed or was stopped. `wrote_nothing` is true only if it provably wrote nothing, as
 * without a repository or a source. The detail contains no secrets.
 */
export class EngineFailed extends Schema.TaggedError<EngineFailed>()("EngineFailed", {
  detail: Schema.String,
  wrote_nothing: Schema.Boolean,
}) {}

/**
 * RepositoryLocked: the engine's own lock is held. TrustAccessDenied: a wrong password or key.
 * NotFound: the snapshot has nothing at the requested path.
 */
export type EngineFailure = EngineFailed | NotFound | RepositoryLocked | TrustAccessDenied

/** Progress of one engine call. It may decrease, because the engine finds more work as it runs. */
export interface EngineProgress {
  /** 0 to 100. */
  readonly percent: number
  readonly bytes_done: number
  readonly bytes_total: number
}

export type OnProgress = (progress: EngineProgress) => Effect.Effect<void>

/** The properties of a repository that an enrollment creates or finds. */
export interface RepositoryFacts {
  readonly format: number
  /** The ciphers and their module, as the engine names them. */
  readonly profile: string
}

export interface FolderBackup {
  /** Absolute path of the folder that becomes the root of the snapshot. */
  readonly path: string
  /** The share, by which snapshots are grouped. */
  readonly host: string
  /** Written with the snapshot, because a later tag would change its id. */
  readonly tags: ReadonlyArray<string>
  /** Paths to include; empty: all. */
  readonly include_patterns: ReadonlyArray<string>
  /** Paths to exclude, even if they are included. */
  readonly exclude_patterns: ReadonlyArray<string>
}

/** The snapshot that a backup made. */
export interface NewSnapshot {
  readonly engine_snapshot_id: string
  /** When the engine started to read: RFC 3339 in UTC, with milliseconds. */
  readonly taken_at: string
  /** Whether some files could not be read; the snapshot has the rest. */
  readonly partial: boolean
  /** Unreadable paths below the folder, or their parents; `/`: anywhere. */
  readonly unread: ReadonlyArray<string>
  /** Total size of its files. */
  readonly bytes: number
  /** Bytes that it added to the repository. */
  readonly stored_bytes: number
  readonly files: number
}

/** A snapshot in the repository. Unknown numbers are 0. */
export interface Snapshot extends Omit<NewSnapshot, "partial" | "unread"> {
  readonly tags: ReadonlyArray<string>
  readonly host: string
}

export interface FolderRestore {
  readonly engine_snapshot_id: string
  /** Absolute path for the root of the snapshot. */
  readonly path: string
  /** The only subtree or file to restore, in its place below the root; null or `/`: all. */
  readonly sub_path: string | null
  /**
   * Whether to delete paths that are not in the snapshot, within the restored subtree only. Paths
   * that the backup's patterns excluded, unread paths and the folders that contain them stay.
   */
  readonly is_exact: boolean
  /** The unread paths of its backup. */
  readonly unread?: ReadonlyArray<string>
}

/** One change that an exact restore would make to a file or folder. */
export interface PlannedAction {
  readonly action: "created" | "updated" | "deleted"
  /** Path below the folder, with a leading slash. */
  readonly path: string
}

/** The changes that an exact restore would make. */
export interface RestorePlan {
  /** SHA-256 of all actions in path order, in hex. */
  readonly hash: string
  readonly created: number
  readonly updated: number
  readonly deleted: number
  readonly unchanged: number
  /** In path order, at most `planned_actions_max`. */
  readonly actions: ReadonlyArray<PlannedAction>
}

/** The maximum number of actions in a plan, which people read. */
export { planned_actions_max } from "#schemas/share-protection/restore.ts"

/** The sample of a snapshot's files that a restore test restores. */
export interface Sample {
  readonly engine_snapshot_id: string
  /** Absolute path of an empty folder for the files; the caller removes it. */
  readonly path: string
  readonly files_max: number
  /** The sample ends at this size, but always has one file. */
  readonly bytes_max: number
  /** The seed of the random choice of files. */
  readonly seed: string
}

/**
 * On interruption, each call stops the engine before it returns and leaves a usable repository
 * without an unfinished snapshot; a file that was being restored may be incomplete. Patterns are
 * restic's: `*.tmp` or `cache` match anywhere, `/top` only at the root, `**` any folders between.
 */
export class Engine extends Context.Service<
  Engine,
  {
    readonly version: string
    /** Whether its repositories have a FIPS profile; restic's have none. */
    readonly is_fips: boolean
    /** Creates a repository in the newest format, or finds the one that this password opens. */
    readonly init: (repository: Repository) => Effect.Effect<RepositoryFacts, EngineFailure>
    readonly backup: (
      repository: Repository,
      folder: FolderBackup,
      onProgress: OnProgress,
    ) => Effect.Effect<NewSnapshot, EngineFailure>
    /** Fails if the snapshot does not exist; NotFound if only the sub path does not. */
    readonly restore: (
      repository: Repository,
      folder: FolderRestore,
      onProgress: OnProgress,
    ) => Effect.Effect<{ readonly files: number; readonly bytes: number }, EngineFailure>
    /** The plan of an exact `restore`; ignores `is_exact`. */
    readonly plan: (
      repository: Repository,
      folder: FolderRestore,
    ) => Effect.Effect<RestorePlan, EngineFailure>
    /**
     * Restores a sample of a snapshot's files and verifies each. Fails if one differs or cannot be
     * restored. Restores no files of an empty snapshot.
     */
    readonly prove: (
      repository: Repository,
      sample: Sample,
    ) => Effect.Effect<{ readonly files: number; readonly bytes: number }, EngineFailure>
    /** Forgets snapshots, ignoring missing ones. Their data stays until maintenance. */
    readonly forget: (
      repository: Repository,
      engine_snapshot_ids: ReadonlyArray<string>,
    ) => Effect.Effect<void, EngineFailure>
    /** Removes unreferenced data and checks the rest. */
    readonly maintain: (repository: Repository) => Effect.Effect<void, EngineFailure>
    /** Upgrades the repository to the newest format. Idempotent. */
    readonly upgrade: (
      repository: Repository,
    ) => Effect.Effect<{ readonly to_format: number }, EngineFailure>
    /** Lists all snapshots in no order, without a lock, even during a write. */
    readonly snapshots: (
      repository: Repository,
    ) => Effect.Effect<ReadonlyArray<Snapshot>, EngineFailure>
    /**
     * Removes stale locks: those of engines that ended on this machine, or were silent for half an
     * hour.
     */
    readonly unlock: (repository: Repository) => Effect.Effect<void, EngineFailure>
  }
>()("actors/share-protection/Engine") {}
