/**
 * The API's representation of a restore.
 *
 * Source: document 2 §2 Restore, §4 rule 5; DECISIONS, document 2, restore.
 */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { Unread } from "#schemas/share-protection/backup.ts"
import { BackupId, JobId, RestoreId, ShareId } from "#schemas/share-protection/id.ts"
import {
  PlanHash,
  RestoreMode,
  RestorePlan,
  RestoreStatus,
  restore_fields,
  SubPath,
} from "#schemas/share-protection/restore.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

/** Its fields are in the order of its table's columns. */
export const Restore = Schema.Struct({
  id: RestoreId,
  ...Struct.omit(restore_fields, ["job_id"]),
  dry_run: Schema.Boolean.annotateKey({
    description: "Whether the restore is only planned. Nothing is written then.",
  }),
  plan_hash: Schema.NullOr(PlanHash).annotateKey({
    description: "Hash of the plan that the share must still match. Null for no condition.",
  }),
  status: RestoreStatus.annotateKey({
    description:
      "`pending` until the target is readable, `queued` until a worker starts, `running`, then " +
      "`available` or `error`.",
  }),
  new_share_id: Schema.NullOr(ShareId).annotateKey({
    description: "ID of the new share. Null until the restore is available, and in place.",
  }),
  files: Schema.NullOr(Count).annotateKey({
    description: "Number of restored files. Null until the restore is available.",
  }),
  bytes: Schema.NullOr(Count).annotateKey({
    description: "Size of the restored files in bytes. Null until the restore is available.",
  }),
  left_alone: Schema.NullOr(Unread).annotateKey({
    description:
      "In place: paths that the backup could not read and the restore therefore did not delete. " +
      "`/` means that nothing was deleted.",
  }),
  plan: Schema.NullOr(RestorePlan).annotateKey({
    description: "The plan of a dry run. Null until it is available, and for other restores.",
  }),
  reason: Schema.NullOr(Reason).annotateKey({
    description: "Why the restore failed. Null unless the status is `error`.",
  }),
  job_id: JobId.annotateKey({ description: "ID of the restore's job." }),
  created_at: Instant.annotateKey({ description: "Time of the request." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
}).annotate({
  identifier: "Restore",
  description: "A copy of a backup's files to a new share, or back to the original one.",
})
export type Restore = typeof Restore.Type

export const NewRestore = Schema.Struct({
  backup_id: BackupId.annotateKey({ description: "ID of the backup to restore." }),
  mode: Schema.optionalKey(RestoreMode).annotateKey({
    description: "Whether to restore to a new share (default) or over the original one.",
  }),
  sub_path: Schema.optionalKey(Schema.NullOr(SubPath)).annotateKey({
    description: "Absolute path of the file or folder to restore. The whole share by default.",
  }),
  force: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "In place: confirms that files are overwritten and deleted. False by default.",
  }),
  dry_run: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "In place: only plan the restore and change nothing. False by default.",
  }),
  plan_hash: Schema.optionalKey(Schema.NullOr(PlanHash)).annotateKey({
    description: "In place: restore only if the plan still has this hash, taken from a dry run.",
  }),
}).annotate({ identifier: "NewRestore", description: "The restore to make." })
export type NewRestore = typeof NewRestore.Type
