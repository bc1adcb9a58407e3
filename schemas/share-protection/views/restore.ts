/**
 * A restore as the API shows it and takes it.
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
  dry_run: Schema.Boolean,
  plan_hash: Schema.NullOr(PlanHash),
  status: RestoreStatus,
  /** The share that was made; null before, and in place. */
  new_share_id: Schema.NullOr(ShareId),
  files: Schema.NullOr(Count),
  bytes: Schema.NullOr(Count),
  /** What its backup could not read: in place that stays, with `/` all that is there. */
  left_alone: Schema.NullOr(Unread),
  /** What it would do, of one that was asked with `dry_run`. */
  plan: Schema.NullOr(RestorePlan),
  /** Why it failed. */
  reason: Schema.NullOr(Reason),
  job_id: JobId,
  created_at: Instant,
  updated_at: Instant,
}).annotate({ identifier: "Restore" })
export type Restore = typeof Restore.Type

export const NewRestore = Schema.Struct({
  backup_id: BackupId,
  mode: Schema.optionalKey(RestoreMode),
  sub_path: Schema.optionalKey(Schema.NullOr(SubPath)),
  force: Schema.optionalKey(Schema.Boolean),
  /** With `in_place`: finds out what the restore would do, and touches nothing. */
  dry_run: Schema.optionalKey(Schema.Boolean),
  /** With `in_place`: the hash of a plan, off which the restore does not go. */
  plan_hash: Schema.optionalKey(Schema.NullOr(PlanHash)),
}).annotate({ identifier: "NewRestore" })
export type NewRestore = typeof NewRestore.Type
