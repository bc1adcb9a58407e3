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
  /** Number of shares with an enabled policy. */
  protected_shares: Count,
  /** Number of restorable backups. */
  backup_count: Count,
  /** Total size of the newest backup of each protected share. */
  protected_bytes: Count,
  /** Measured size of the project's repositories. */
  stored_bytes: Count,
}).annotate({ identifier: "Usage" })
export type Usage = typeof Usage.Type

/** A share of the share service, or one that a policy or a backup still references. */
export const CoverageEntry = Schema.Struct({
  share_id: ShareId,
  project_id: ProjectId,
  policy_id: Schema.NullOr(PolicyId),
  target_id: Schema.NullOr(TargetId),
  protected: Schema.Boolean,
  backup_count: Count,
  /** When the newest backup was taken; null without backups. */
  last_backup_at: Schema.NullOr(Instant),
  /** The backup of the last successful restore test, which may have been deleted since. */
  last_proven_restorable: Schema.NullOr(
    Schema.Struct({ backup_id: BackupId, taken_at: Instant, proven_at: Instant }),
  ),
  /** Null unless the share's last restore test failed. */
  restore_test_failure: Schema.NullOr(
    Schema.Struct({ backup_id: BackupId, failed_at: Instant, reason: Reason }),
  ),
}).annotate({ identifier: "CoverageEntry" })
export type CoverageEntry = typeof CoverageEntry.Type
