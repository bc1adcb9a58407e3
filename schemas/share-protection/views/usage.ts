/**
 * Protected shares and the storage that they use. Source: document 2 §2 Usage, Coverage entry;
 * DECISIONS, document 2, coverage and usage.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { BackupId, PolicyId, ProjectId, ShareId, TargetId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const Usage = Schema.Struct({
  project_id: ProjectId,
  protected_shares: Count.annotateKey({
    description: "Number of shares with an enabled policy.",
  }),
  backup_count: Count.annotateKey({ description: "Number of available backups." }),
  protected_bytes: Count.annotateKey({
    description: "Total size of the newest available backup of each protected share, in bytes.",
  }),
  stored_bytes: Count.annotateKey({
    description: "Measured size of the project's repositories, in bytes.",
  }),
}).annotate({ identifier: "Usage", description: "Protected and stored bytes of a project." })
export type Usage = typeof Usage.Type

const ProvenBackup = Schema.Struct({
  backup_id: BackupId.annotateKey({
    description: "ID of the tested backup, which may have been deleted since.",
  }),
  taken_at: Instant.annotateKey({ description: "Time at which the backup was taken." }),
  proven_at: Instant.annotateKey({ description: "Time of the test." }),
})

const FailedTest = Schema.Struct({
  backup_id: BackupId.annotateKey({ description: "ID of the tested backup." }),
  failed_at: Instant.annotateKey({ description: "Time of the test." }),
  reason: Reason.annotateKey({ description: "Which files could not be restored, or differed." }),
})

/** A share of the share service, or one that a policy or a backup still references. */
export const CoverageEntry = Schema.Struct({
  share_id: ShareId,
  project_id: ProjectId.annotateKey({ description: "Project of the share." }),
  policy_id: Schema.NullOr(PolicyId).annotateKey({
    description: "ID of the share's policy. Null without one.",
  }),
  target_id: Schema.NullOr(TargetId).annotateKey({
    description: "ID of the target of the policy, or else of the newest backup. Null without both.",
  }),
  protected: Schema.Boolean.annotateKey({
    description: "Whether the share has an enabled policy.",
  }),
  backup_count: Count.annotateKey({ description: "Number of available backups of the share." }),
  last_backup_at: Schema.NullOr(Instant).annotateKey({
    description: "Time at which the newest available backup was taken. Null without backups.",
  }),
  last_proven_restorable: Schema.NullOr(ProvenBackup).annotateKey({
    description: "The last successful restore test. Null without one.",
  }),
  restore_test_failure: Schema.NullOr(FailedTest).annotateKey({
    description: "The last restore test, if it failed. Null otherwise.",
  }),
}).annotate({ identifier: "CoverageEntry", description: "The protection of a share." })
export type CoverageEntry = typeof CoverageEntry.Type
