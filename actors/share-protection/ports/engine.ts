/**
 * Engine, the port to the backup engine: snapshots of folders in a repository in a bucket.
 *
 * It promises what restic can keep. Whoever calls it holds the repository's lease, in the mode
 * that `lease_modes` gives; the engine's own lock is only the second line.
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
 * The engine could not do it, or stopped half way. `wrote_nothing` is true only where it did not
 * come to write at all: no repository, no source. Its detail holds no secret.
 */
export class EngineFailed extends Schema.TaggedError<EngineFailed>()("EngineFailed", {
  detail: Schema.String,
  wrote_nothing: Schema.Boolean,
}) {}

/**
 * RepositoryLocked: the engine's own lock is held. TrustAccessDenied: a wrong password or key.
 * NotFound: a snapshot has nothing at the path that its tenant named.
 */
export type EngineFailure = EngineFailed | NotFound | RepositoryLocked | TrustAccessDenied

/** How far one call of the engine is. It may fall: what there is to do is found on the way. */
export interface EngineProgress {
  /** 0 to 100. */
  readonly percent: number
  readonly bytes_done: number
  readonly bytes_total: number
}

export type OnProgress = (progress: EngineProgress) => Effect.Effect<void>

/** What is made, or found, by an enrollment. */
export interface RepositoryFacts {
  readonly format: number
  /** The ciphers and the module they come from, in the engine's words. */
  readonly profile: string
}

export interface FolderBackup {
  /** The folder whose content becomes the snapshot's root; absolute. */
  readonly path: string
  /** Groups snapshots: the share. */
  readonly host: string
  /** Written with the snapshot, since a later tag would change its id. */
  readonly tags: ReadonlyArray<string>
  /** Only what one of these matches; empty: everything. */
  readonly include_patterns: ReadonlyArray<string>
  /** Not what one of these matches, though it be included. */
  readonly exclude_patterns: ReadonlyArray<string>
}

/** What a backup made. */
export interface NewSnapshot {
  readonly engine_snapshot_id: string
  /** When the engine began to read: RFC 3339 in UTC, with milliseconds. */
  readonly taken_at: string
  /** Whether something could not be read: the snapshot has the rest. */
  readonly partial: boolean
  /** Below the folder: what could not be read, or where that is; `/`: anywhere. */
  readonly unread: ReadonlyArray<string>
  /** Of all files in it. */
  readonly bytes: number
  /** What it added to the repository. */
  readonly stored_bytes: number
  readonly files: number
}

/** A snapshot as the repository has it. Numbers that it does not tell are 0. */
export interface Snapshot extends Omit<NewSnapshot, "partial" | "unread"> {
  readonly tags: ReadonlyArray<string>
  readonly host: string
}

export interface FolderRestore {
  readonly engine_snapshot_id: string
  /** Where the snapshot's root goes; absolute. */
  readonly path: string
  /** Only this subtree or file, which keeps its place below the root; null or `/`: everything. */
  readonly sub_path: string | null
  /**
   * Whether what the snapshot does not have is deleted: there, or in that subtree alone. What its
   * backup's patterns kept out, or what is unread, stays, and so does a folder that is not in it
   * and holds such.
   */
  readonly is_exact: boolean
  /** As its backup told. */
  readonly unread?: ReadonlyArray<string>
}

/** What an exact restore would do to one file or folder. */
export interface PlannedAction {
  readonly action: "created" | "updated" | "deleted"
  /** Below the folder, with a slash before it. */
  readonly path: string
}

/** What an exact restore would do, found without touching anything. */
export interface RestorePlan {
  /** SHA-256 over every action in the order of the paths, in hex: the same for the same actions. */
  readonly hash: string
  readonly created: number
  readonly updated: number
  readonly deleted: number
  readonly unchanged: number
  /** In the order of their paths, and at most `planned_actions_max`. */
  readonly actions: ReadonlyArray<PlannedAction>
}

/** Actions that a plan lists: as many as somebody reads. */
export { planned_actions_max } from "#schemas/share-protection/restore.ts"

/** Files of a snapshot that are restored to prove it. */
export interface Sample {
  readonly engine_snapshot_id: string
  /** An empty folder for them, absolute; whoever made it removes it. */
  readonly path: string
  readonly files_max: number
  /** Files are chosen until they have so many bytes; the first one always is. */
  readonly bytes_max: number
  /** Other seeds choose other files. */
  readonly seed: string
}

/**
 * Interrupted, each of these stops the engine before it returns, and leaves a usable repository
 * without a snapshot of what was not finished; a file that was being restored may be half there.
 * A pattern is restic's: `*.tmp` or `cache` wherever it is, `/top` only at the root, `**` any
 * folders between.
 */
export class Engine extends Context.Service<
  Engine,
  {
    readonly version: string
    /** Whether what it makes has a FIPS profile. restic's has not. */
    readonly is_fips: boolean
    /** Makes the repository in the newest format; finds the one that this password opens. */
    readonly init: (repository: Repository) => Effect.Effect<RepositoryFacts, EngineFailure>
    readonly backup: (
      repository: Repository,
      folder: FolderBackup,
      onProgress: OnProgress,
    ) => Effect.Effect<NewSnapshot, EngineFailure>
    /** Fails where the snapshot is not there, with NotFound where the sub path is not. */
    readonly restore: (
      repository: Repository,
      folder: FolderRestore,
      onProgress: OnProgress,
    ) => Effect.Effect<{ readonly files: number; readonly bytes: number }, EngineFailure>
    /** What `restore` of this would do, be it exact or not asked to be: as if it were. */
    readonly plan: (
      repository: Repository,
      folder: FolderRestore,
    ) => Effect.Effect<RestorePlan, EngineFailure>
    /**
     * Restores some files of a snapshot and compares each with what was backed up. Fails when
     * one differs or cannot be had. Of a snapshot without files: none.
     */
    readonly prove: (
      repository: Repository,
      sample: Sample,
    ) => Effect.Effect<{ readonly files: number; readonly bytes: number }, EngineFailure>
    /** Snapshots that are not there are forgotten already. Their bytes stay until maintenance. */
    readonly forget: (
      repository: Repository,
      engine_snapshot_ids: ReadonlyArray<string>,
    ) => Effect.Effect<void, EngineFailure>
    /** Removes what no snapshot needs, and checks the rest. */
    readonly maintain: (repository: Repository) => Effect.Effect<void, EngineFailure>
    /** Brings the repository to the newest format, or finds it there. */
    readonly upgrade: (
      repository: Repository,
    ) => Effect.Effect<{ readonly to_format: number }, EngineFailure>
    /** Without a lock: also while another one writes. In no order. */
    readonly snapshots: (
      repository: Repository,
    ) => Effect.Effect<ReadonlyArray<Snapshot>, EngineFailure>
    /** Takes away the locks of engines that are gone: ended here, or silent for half an hour. */
    readonly unlock: (repository: Repository) => Effect.Effect<void, EngineFailure>
  }
>()("actors/share-protection/Engine") {}
