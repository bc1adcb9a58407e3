/**
 * A restore: writes a backup's files to a new share, or back to the original.
 *
 * Source: document 2 §2 Restore, §4 rule 5; DECISIONS, document 2, restore, backup status.
 */
import { Effect, Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Unread } from "#schemas/share-protection/backup.ts"
import { BackupId, JobId, ProjectId, ShareId, TargetId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const RestoreMode = Schema.Literals(["new_share", "in_place"])
export type RestoreMode = typeof RestoreMode.Type

export const RestoreStatus = Schema.Literals(["pending", "queued", "running", "available", "error"])
export type RestoreStatus = typeof RestoreStatus.Type

/** Length of Linux's longest path in bytes. */
const sub_path_bytes_max = 4096

const isInside = (path: string) => {
  if (path.split("/").includes("..")) return "Expected a path inside the share, without .."
  return (
    new TextEncoder().encode(path).length <= sub_path_bytes_max ||
    `Expected at most ${sub_path_bytes_max} bytes`
  )
}

/** An absolute path within the share: `/` is the share itself. */
export const SubPath = Schema.String.check(
  Schema.isMaxLength(sub_path_bytes_max),
  Schema.isPattern(/^\/[^\p{Cc}]*$/u, { expected: "an absolute path inside the share" }),
  Schema.makeFilter<string>(isInside),
)

/** Identifies a plan: SHA-256 of its actions, in hex. */
export const PlanHash = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/u, { expected: "64 hex digits" }),
)

/**
 * Maximum number of listed actions in a plan, and of their bytes as JSON; the others are only
 * counted.
 */
export const planned_actions_max = 200
export const planned_bytes_max = 64 * 1024

const PlannedAction = Schema.Struct({
  action: Schema.Literals(["created", "updated", "deleted"]).annotateKey({
    description: "The effect of the restore on the file.",
  }),
  path: Schema.String.annotateKey({
    description: "Path below the share's root, with a leading slash.",
  }),
})

/** The changes that a restore in place would make to the share's current state. */
export const RestorePlan = Schema.Struct({
  hash: PlanHash.annotateKey({
    description: "Hash of all actions: send it as `plan_hash` to restore only if they still apply.",
  }),
  created: Count.annotateKey({ description: "Number of files that would be created." }),
  updated: Count.annotateKey({ description: "Number of files that would be overwritten." }),
  deleted: Count.annotateKey({ description: "Number of files that would be deleted." }),
  unchanged: Count.annotateKey({ description: "Number of files that would stay unchanged." }),
  actions: Schema.Array(PlannedAction)
    .check(Schema.isMaxLength(planned_actions_max))
    .annotateKey({
      description: `The first ${planned_actions_max} actions at most, ordered by path.`,
    }),
}).annotate({ description: "The changes that a restore in place would make to the share." })
export type RestorePlan = typeof RestorePlan.Type

export const restore_fields = {
  project_id: ProjectId,
  backup_id: BackupId.annotateKey({ description: "ID of the restored backup." }),
  share_id: ShareId.annotateKey({ description: "ID of the backed-up share." }),
  target_id: TargetId,
  mode: RestoreMode.annotateKey({
    description: "Whether the files go to a new share or back to the original one.",
  }),
  sub_path: Schema.NullOr(SubPath).annotateKey({
    description: "The restored file or folder. Null for the whole share.",
  }),
  force: Schema.Boolean.annotateKey({
    description: "Whether the request confirmed that files may be overwritten.",
  }),
  /** Whether to only plan a restore in place. */
  dry_run: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** Restores only if the plan still has this hash; null: unconditionally. */
  plan_hash: Schema.NullOr(PlanHash).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  job_id: JobId,
}

export const restored_fields = {
  /** The new share; null in place. */
  new_share_id: Schema.NullOr(ShareId),
  files: Count,
  bytes: Count,
  /**
   * In place: paths that the backup could not read and that are therefore not deleted; `/`: nothing
   * is deleted.
   */
  left_alone: Schema.optionalKey(Unread),
  /** The plan of a dry run. */
  plan: Schema.NullOr(RestorePlan).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
}

export const RequestRestore = message("RequestRestore", restore_fields)
/** Its target is readable; it waits for a worker. */
export const QueueRestore = message("QueueRestore", {})
export const StartRestore = message("StartRestore", {})
export const CompleteRestore = message("CompleteRestore", restored_fields)
export const FailRestore = message("FailRestore", { reason: Reason })
/** Starts a new attempt after an error. */
export const RetryRestore = message("RetryRestore", {})

export const RestoreCommand = Schema.Union([
  RequestRestore,
  QueueRestore,
  StartRestore,
  CompleteRestore,
  FailRestore,
  RetryRestore,
])
export type RestoreCommand = typeof RestoreCommand.Type
