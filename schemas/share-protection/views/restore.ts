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
  dry_run: Schema.Boolean,
  plan_hash: Schema.NullOr(PlanHash),
  status: RestoreStatus,
  /** The new share; null until completion, and in place. */
  new_share_id: Schema.NullOr(ShareId),
  files: Schema.NullOr(Count),
  bytes: Schema.NullOr(Count),
  /** Paths that the backup could not read: they stay in place; `/`: everything stays. */
  left_alone: Schema.NullOr(Unread),
  /** The plan of a `dry_run`. */
  plan: Schema.NullOr(RestorePlan),
  /** Why it failed. */
  reason: Schema.NullOr(Reason),
  job_id: JobId,
  created_at: Instant,
  updated_at: Instant,
}).annotate({ identifier: "Restore" })
export type Restore = typeof Restore.Type

export const NewRestore = Schema.Struct({
  backup_id: BackupId.annotateKey({ description: "The backup" }),
  mode: Schema.optionalKey(RestoreMode).annotateKey({
    description: "Where to; a new share by default",
  }),
  sub_path: Schema.optionalKey(Schema.NullOr(SubPath)).annotateKey({
    description: "Only this file or folder, from / on",
  }),
  force: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "In place: overwrite what is there",
  }),
  dry_run: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "In place: say what would be done, and do nothing",
  }),
  plan_hash: Schema.optionalKey(Schema.NullOr(PlanHash)).annotateKey({
    description: "In place: do it only if it is what the dry run with this hash said",
  }),
}).annotate({ identifier: "NewRestore" })
export type NewRestore = typeof NewRestore.Type
