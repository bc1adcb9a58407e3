/**
 * A restore: a backup's files put into a new share, or back in place.
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

/** Bytes of Linux's longest path. */
const sub_path_bytes_max = 4096

const isInside = (path: string) => {
  if (path.split("/").includes("..")) return "a path without .. that stays inside the share"
  return (
    new TextEncoder().encode(path).length <= sub_path_bytes_max ||
    `at most ${sub_path_bytes_max} bytes`
  )
}

/** Absolute inside the share: `/` is the share itself. */
export const SubPath = Schema.String.check(
  Schema.isMaxLength(sub_path_bytes_max),
  Schema.isPattern(/^\/[^\p{Cc}]*$/u, { expected: "an absolute path inside the share" }),
  Schema.makeFilter<string>(isInside),
)

/** Names a plan: SHA-256 over its actions, in hex. */
export const PlanHash = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, { expected: "64 hex digits" }),
)

/** Actions that a plan lists, and their bytes as JSON: the rest is only counted. */
export const planned_actions_max = 200
export const planned_bytes_max = 64 * 1024

const PlannedAction = Schema.Struct({
  action: Schema.Literals(["created", "updated", "deleted"]),
  /** Below the share's root, with a slash before it. */
  path: Schema.String,
})

/** What a restore in place would do to the share, as it is now. */
export const RestorePlan = Schema.Struct({
  hash: PlanHash,
  created: Count,
  updated: Count,
  deleted: Count,
  unchanged: Count,
  /** The first ones, in the order of their paths. */
  actions: Schema.Array(PlannedAction).check(Schema.isMaxLength(planned_actions_max)),
})
export type RestorePlan = typeof RestorePlan.Type

export const restore_fields = {
  project_id: ProjectId,
  backup_id: BackupId,
  /** The share that was backed up. */
  share_id: ShareId,
  target_id: TargetId,
  mode: RestoreMode,
  sub_path: Schema.NullOr(SubPath),
  force: Schema.Boolean,
  /** Whether it only plans what it would do, in place. */
  dry_run: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** It takes place only while its plan is this one; null: whatever is there. */
  plan_hash: Schema.NullOr(PlanHash).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  job_id: JobId,
}

export const restored_fields = {
  /** The share that was made; null in place. */
  new_share_id: Schema.NullOr(ShareId),
  files: Count,
  bytes: Count,
  /** In place: what the backup could not read, and is not deleted therefore; `/`: nothing is. */
  left_alone: Schema.optionalKey(Unread),
  /** Of one that only plans. */
  plan: Schema.NullOr(RestorePlan).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
}

export const RequestRestore = message("RequestRestore", restore_fields)
/** Its target can be read: it waits for a worker. */
export const QueueRestore = message("QueueRestore", {})
export const StartRestore = message("StartRestore", {})
export const CompleteRestore = message("CompleteRestore", restored_fields)
export const FailRestore = message("FailRestore", { reason: Reason })
/** A new attempt after an error. */
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
