/**
 * The API's representation of a backup, in both shapes.
 *
 * Source: document 2 §2 Backup; DECISIONS, document 2, backup create, backup status.
 */
import { Schema, Struct } from "effect"
import { backup_row } from "#schemas/share-protection/backup.ts"
import { PolicyId, ShareId, TargetId } from "#schemas/share-protection/id.ts"

const shown = {
  ...Struct.omit(backup_row, ["target_id", "domain_id"]),
  /** False until known. */
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

const snapshot_option = {
  crash_consistent: Schema.optionalKey(Schema.NullOr(Schema.Boolean)).annotateKey({
    description: "From a snapshot of the share, or from the share itself",
  }),
}

const share_id = ShareId.annotateKey({ description: "The share" })
const policy = { description: "The policy whose patterns and retention it has" }

/** Without `target_id`, the policy determines the target. */
export const NewBackupA = Schema.Struct({
  share_id,
  target_id: Schema.optionalKey(TargetId).annotateKey({ description: "Where it goes" }),
  policy_id: Schema.optionalKey(Schema.NullOr(PolicyId)).annotateKey(policy),
  ...snapshot_option,
})
  .check(
    Schema.makeFilter<{ readonly target_id?: unknown; readonly policy_id?: unknown }>(
      ({ target_id, policy_id }) =>
        target_id !== undefined || typeof policy_id === "string" || "a target_id or a policy_id",
    ),
  )
  .annotate({ identifier: "NewBackup" })

export const NewBackupB = Schema.Struct({
  share_id,
  policy_id: PolicyId.annotateKey(policy),
  ...snapshot_option,
}).annotate({ identifier: "NewBackupOfPolicy" })
