/**
 * The API's representation of a policy, in both shapes.
 *
 * Source: document 2 §2 Policy, §4 rule 2; DECISIONS, document 2, policy.
 */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { backup_row } from "#schemas/share-protection/backup.ts"
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

const description = "When a share is backed up, to where, and which backups are kept."

export const PolicyA = Schema.Struct({
  ...shown,
  target_id: TargetId.annotateKey({ description: "ID of the target of the backups." }),
}).annotate({ identifier: "Policy", description })
export type PolicyA = typeof PolicyA.Type

export const PolicyB = Schema.Struct({
  ...shown,
  target_template_id: TargetTemplateId.annotateKey({
    description: "ID of the template whose bucket stores the backups.",
  }),
}).annotate({ identifier: "PolicyOfTemplate", description })
export type PolicyB = typeof PolicyB.Type

const { name, share_id, schedule, retention } = policy_row

/** Checked on input only, because recorded patterns never change. */
const readable = Schema.makeFilter<ReadonlyArray<string>>((patterns) => {
  const at = patterns.findIndex((pattern) => !isReadable(pattern))
  return (
    at === -1 || {
      path: [at],
      issue:
        "Expected a pattern without .. and with closed brackets, such as *.tmp, /cache or [a-z]*",
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
  target_id: TargetId.annotateKey({ description: "ID of the target to back up to." }),
  schedule,
  retention,
  ...choices,
}).annotate({ identifier: "NewPolicy", description: "The policy to create." })

/** Without `retention`, the template's default applies. */
export const NewPolicyB = Schema.Struct({
  name,
  share_id,
  target_template_id: TargetTemplateId.annotateKey({
    description: "ID of the template whose bucket stores the backups.",
  }),
  schedule,
  retention: Schema.optionalKey(retention),
  ...choices,
}).annotate({ identifier: "NewPolicyOfTemplate", description: "The policy to create." })

/** Without `timezone`, the policy's own applies. */
export const NewRetentionPreview = Schema.Struct({
  retention,
  timezone: policy_changes.timezone.annotateKey({
    description: "IANA time zone of days, weeks and months. The policy's own by default.",
  }),
}).annotate({ identifier: "NewRetentionPreview", description: "The retention to try." })

const about_backup = {
  backup_id: BackupId,
  taken_at: Instant.annotateKey({ description: "Time at which the backup was taken." }),
}
const { bytes, stored_bytes } = backup_row

const KeptBackup = Schema.Struct({
  ...about_backup,
  reasons: Schema.Array(
    Schema.Literals(["keep_last", "keep_daily", "keep_weekly", "keep_monthly", "undeleted"]),
  ).annotateKey({
    description: "The rules that keep the backup. `undeleted` if it was undeleted.",
  }),
})

/** The effect of a retention on a policy's current backups. */
export const RetentionPreview = Schema.Struct({
  keep: Schema.Array(KeptBackup).annotateKey({ description: "The backups that would stay." }),
  expire: Schema.Array(Schema.Struct({ ...about_backup, bytes, stored_bytes })).annotateKey({
    description: "The backups that would expire.",
  }),
  expire_bytes: Count.annotateKey({
    description: "Total size of the files in the backups that would expire, in bytes.",
  }),
  expire_stored_bytes: Count.annotateKey({
    description:
      "Bytes that these backups added to the repository. Fewer are freed if other backups use " +
      "the same data.",
  }),
}).annotate({
  identifier: "RetentionPreview",
  description: "The effect of a retention on the policy's current backups.",
})

export const PolicyChanges = Schema.Struct(changeable)
