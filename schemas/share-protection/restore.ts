/**
 * A restore: a backup's files put into a new share, or back in place.
 *
 * Source: document 2 §2 Restore, §4 rule 5; DECISIONS, document 2, restore, backup status.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
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

export const restore_fields = {
  project_id: ProjectId,
  backup_id: BackupId,
  /** The share that was backed up. */
  share_id: ShareId,
  target_id: TargetId,
  mode: RestoreMode,
  sub_path: Schema.NullOr(SubPath),
  force: Schema.Boolean,
  job_id: JobId,
}

export const restored_fields = {
  /** The share that was made; null in place. */
  new_share_id: Schema.NullOr(ShareId),
  files: Count,
  bytes: Count,
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
