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
  crash_consistent: Schema.Boolean.annotateKey({
    description:
      "Whether a snapshot of the share was read instead of the live share. False until the " +
      "backup is available.",
  }),
}
const description = "A copy of a share's files at one time, in a target's repository."

export const BackupA = Schema.Struct({ ...shown, target_id: TargetId }).annotate({
  identifier: "Backup",
  description,
})
export type BackupA = typeof BackupA.Type

export const BackupB = Schema.Struct({
  ...shown,
  target_bucket_id: TargetId.annotateKey({ description: "ID of the bucket." }),
}).annotate({ identifier: "BackupInBucket", description })
export type BackupB = typeof BackupB.Type

const snapshot_option = {
  crash_consistent: Schema.optionalKey(Schema.NullOr(Schema.Boolean)).annotateKey({
    description:
      "Whether to read a snapshot of the share (true) or the live share (false). By default, a " +
      "snapshot if the share supports it.",
  }),
}

const share_id = ShareId.annotateKey({ description: "ID of the share to back up." })
const policy = {
  description: "ID of a policy of the share. Its patterns, retries and retention apply.",
}

/** In the API document: a backup that has no target. */
const without_target = { target_id: { not: {} }, policy_id: { type: "null" } } as const

/** Without `target_id`, the policy determines the target. */
export const NewBackupA = Schema.Struct({
  share_id,
  target_id: Schema.optionalKey(TargetId).annotateKey({
    description: "ID of the target to back up to. The policy's target by default.",
  }),
  policy_id: Schema.optionalKey(Schema.NullOr(PolicyId)).annotateKey(policy),
  ...snapshot_option,
})
  .check(
    Schema.makeFilter<{ readonly target_id?: unknown; readonly policy_id?: unknown }>(
      ({ target_id, policy_id }) =>
        target_id !== undefined ||
        typeof policy_id === "string" ||
        "Expected a target_id or a policy_id",
      { toJsonSchema: () => ({ not: { properties: without_target } }) },
    ),
  )
  .annotate({ identifier: "NewBackup", description: "The backup to make." })

export const NewBackupB = Schema.Struct({
  share_id,
  policy_id: PolicyId.annotateKey(policy),
  ...snapshot_option,
}).annotate({ identifier: "NewBackupOfPolicy", description: "The backup to make." })
