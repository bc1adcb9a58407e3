/**
 * A backup as the API shows it and takes it, in either shape.
 *
 * Source: document 2 §2 Backup; DECISIONS, document 2, backup create, backup status.
 */
import { Schema, Struct } from "effect"
import { backup_row } from "#schemas/share-protection/backup.ts"
import { PolicyId, ShareId, TargetId } from "#schemas/share-protection/id.ts"

const shown = {
  ...Struct.omit(backup_row, ["target_id", "domain_id"]),
  /** False until it is known. */
  crash_consistent: Schema.Boolean,
}

export const BackupA = Schema.Struct({ ...shown, target_id: TargetId }).annotate({
  identifier: "Backup",
})
export type BackupA = typeof BackupA.Type

export const BackupB = Schema.Struct({ ...shown, target_bucket_id: TargetId }).annotate({
  identifier: "BackupInBucket",
})
export type BackupB = typeof BackupB.Type

const wish = { crash_consistent: Schema.optionalKey(Schema.NullOr(Schema.Boolean)) }

/** Without `target_id` the policy says where to. */
export const NewBackupA = Schema.Struct({
  share_id: ShareId,
  target_id: Schema.optionalKey(TargetId),
  policy_id: Schema.optionalKey(Schema.NullOr(PolicyId)),
  ...wish,
})
  .check(
    Schema.makeFilter<{ readonly target_id?: unknown; readonly policy_id?: unknown }>(
      ({ target_id, policy_id }) =>
        target_id !== undefined || typeof policy_id === "string" || "a target_id or a policy_id",
    ),
  )
  .annotate({ identifier: "NewBackup" })

export const NewBackupB = Schema.Struct({
  share_id: ShareId,
  policy_id: PolicyId,
  ...wish,
}).annotate({ identifier: "NewBackupOfPolicy" })
