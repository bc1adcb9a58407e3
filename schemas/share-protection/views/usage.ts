/**
 * What is protected, and what it takes. Source: document 2 §2 Usage, Coverage entry; DECISIONS,
 * document 2, coverage and usage.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { BackupId, PolicyId, ProjectId, ShareId, TargetId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const Usage = Schema.Struct({
  project_id: ProjectId,
  /** Shares with a policy that is enabled. */
  protected_shares: Count,
  /** Backups that can be restored. */
  backup_count: Count,
  /** Size of the newest of them of each protected share, summed. */
  protected_bytes: Count,
  /** What the project's repositories hold, measured. */
  stored_bytes: Count,
}).annotate({ identifier: "Usage" })
export type Usage = typeof Usage.Type

/** One share of the share service, or one that a policy or a backup still knows. */
export const CoverageEntry = Schema.Struct({
  share_id: ShareId,
  project_id: ProjectId,
  policy_id: Schema.NullOr(PolicyId),
  target_id: Schema.NullOr(TargetId),
  protected: Schema.Boolean,
  backup_count: Count,
  /** When the newest of them was taken; null where there is none. */
  last_backup_at: Schema.NullOr(Instant),
  /** The backup that a restore test proved last, which may be gone since. */
  last_proven_restorable: Schema.NullOr(
    Schema.Struct({ backup_id: BackupId, taken_at: Instant, proven_at: Instant }),
  ),
  /** Null unless the share's last restore test failed. */
  restore_test_failure: Schema.NullOr(
    Schema.Struct({ backup_id: BackupId, failed_at: Instant, reason: Reason }),
  ),
}).annotate({ identifier: "CoverageEntry" })
export type CoverageEntry = typeof CoverageEntry.Type
