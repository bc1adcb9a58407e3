/**
 * The API's representation of a policy, in both shapes.
 *
 * Source: document 2 §2 Policy, §4 rule 2; DECISIONS, document 2, policy.
 */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { BackupId, TargetId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { isReadable, policy_changes, policy_row } from "#schemas/share-protection/policy.ts"
import { Count } from "#schemas/share-protection/text.ts"

/** Fields that are hidden in one shape or both. */
export const hidden = [
  "target_id",
  "target_template_id",
  "domain_id",
  "in_flight_backup_id",
] as const

const shown = Struct.omit(policy_row, hidden)

export const PolicyA = Schema.Struct({ ...shown, target_id: TargetId }).annotate({
  identifier: "Policy",
})
export type PolicyA = typeof PolicyA.Type

export const PolicyB = Schema.Struct({ ...shown, target_template_id: TargetTemplateId }).annotate({
  identifier: "PolicyOfTemplate",
})
export type PolicyB = typeof PolicyB.Type

const { name, share_id, schedule, retention } = policy_row

/** Checked on input only, because recorded patterns never change. */
const readable = Schema.makeFilter<ReadonlyArray<string>>((patterns) => {
  const at = patterns.findIndex((pattern) => !isReadable(pattern))
  return (
    at === -1 || {
      path: [at],
      issue: "a pattern without .. whose brackets are closed, such as *.tmp, /cache or [a-z]*",
    }
  )
})
const patterns = {
  include_patterns: Schema.optionalKey(policy_row.include_patterns.check(readable)),
  exclude_patterns: Schema.optionalKey(policy_row.exclude_patterns.check(readable)),
}
const changeable = { ...policy_changes, ...patterns }
const choices = Struct.omit(changeable, ["name", "schedule", "retention"])

export const NewPolicyA = Schema.Struct({
  name,
  share_id,
  target_id: TargetId.annotateKey({ description: "The target" }),
  schedule,
  retention,
  ...choices,
}).annotate({ identifier: "NewPolicy" })

/** Without `retention`, the template's default applies. */
export const NewPolicyB = Schema.Struct({
  name,
  share_id,
  target_template_id: TargetTemplateId.annotateKey({
    description: "The template of the targets",
  }),
  schedule,
  retention: Schema.optionalKey(retention),
  ...choices,
}).annotate({ identifier: "NewPolicyOfTemplate" })

/** Without `timezone`, the policy's own applies. */
export const NewRetentionPreview = Schema.Struct({
  retention,
  timezone: policy_changes.timezone.annotateKey({
    description: "In which days and weeks are counted",
  }),
}).annotate({ identifier: "NewRetentionPreview" })

const about_backup = { backup_id: BackupId, taken_at: Instant }

/** The effect of a retention on a policy's present backups. */
export const RetentionPreview = Schema.Struct({
  keep: Schema.Array(
    Schema.Struct({
      ...about_backup,
      /** The rules that keep it; `undeleted`: its tenant undeleted it. */
      reasons: Schema.Array(
        Schema.Literals(["keep_last", "keep_daily", "keep_weekly", "keep_monthly", "undeleted"]),
      ),
    }),
  ),
  expire: Schema.Array(
    Schema.Struct({
      ...about_backup,
      bytes: Schema.NullOr(Count),
      stored_bytes: Schema.NullOr(Count),
    }),
  ),
  /** Size of the files in backups that would expire. */
  expire_bytes: Count,
  /** Bytes that they added to the repository; less is freed if other backups share them. */
  expire_stored_bytes: Count,
}).annotate({ identifier: "RetentionPreview" })

export const PolicyChanges = Schema.Struct(changeable)
