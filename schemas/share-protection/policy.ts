/**
 * A policy: when and where to back up a share, and which backups to keep.
 *
 * Its stream is named after the share, so the log's version check prevents a second policy and a
 * second concurrent backup.
 *
 * Source: document 2 §2 Policy, §4 rules 2 and 3; DECISIONS, document 2, policy, backup create.
 */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { cron_pattern } from "#schemas/share-protection/cron.ts"
import {
  BackupId,
  DomainId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import { Retention } from "#schemas/share-protection/retention.ts"
import { Name } from "#schemas/share-protection/text.ts"

/** Maximum number of retries: document 2 §8. */
const max_retries_max = 10

/** Maximum size of a policy's patterns in bytes of JSON. */
const patterns_bytes_max = 4096
const patterns_max = 256

const schedule_chars_max = 256

/** The scheduler parses a cron expression; the pattern is for the API document. */
export const Schedule = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxLength(schedule_chars_max),
).annotate({
  documentedAs: { type: "string", maxLength: schedule_chars_max, pattern: cron_pattern },
  respondedAs: { type: "string", minLength: 1, maxLength: schedule_chars_max },
})

/** A bracket expression's content: characters or ranges. */
const ranges = String.raw`(?:(?:[^\\\-\]]|\\[^])(?:-(?:[^\\\-\]]|\\[^]))?)+`
/** One path component in the syntax of Go's `filepath.Match`: brackets are closed and not empty. */
const pattern_part = new RegExp(
  String.raw`^(?:[^\\[]|\\[^]|\[(?:\^${ranges}|(?!\^)${ranges})\])*$`,
  "u",
)

/**
 * Whether the engine accepts the pattern: an invalid one would fail every backup of the policy.
 * `..` would make backups empty, because it includes nothing or excludes the whole share.
 */
export const isReadable = (pattern: string) =>
  pattern.split("/").every((part) => part !== ".." && pattern_part.test(part))

const Patterns = Schema.Array(
  Schema.String.check(
    Schema.isMinLength(1),
    Schema.isPattern(/^[^\p{Cc}]*$/u, { expected: "no control characters" }),
  ),
).check(
  Schema.isMaxLength(patterns_max),
  Schema.makeFilter<ReadonlyArray<string>>(
    (patterns) =>
      new TextEncoder().encode(JSON.stringify(patterns)).length <= patterns_bytes_max ||
      `Expected at most ${patterns_bytes_max} bytes of JSON`,
  ),
)

const editable = {
  name: Name.annotateKey({ description: "Name of the policy, which need not be unique." }),
  schedule: Schedule.annotateKey({
    description: "Times of the backups, as a cron expression of five fields.",
    examples: ["30 2 * * *"],
  }),
  timezone: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(64)).annotateKey({
    description: "IANA time zone of the schedule and the retention. UTC by default.",
    examples: ["Europe/Berlin"],
  }),
  retention: Retention.annotateKey({
    description: "Which backups to keep. A backup that no rule keeps expires.",
  }),
  enabled: Schema.Boolean.annotateKey({
    description: "Whether scheduled backups are made. True by default.",
  }),
  include_patterns: Patterns.annotateKey({
    description: "Glob patterns of the paths to back up. Without any, the whole share.",
    flag: "include",
  }),
  exclude_patterns: Patterns.annotateKey({
    description: "Glob patterns of paths to leave out of the backups.",
    flag: "exclude",
  }),
  max_retries: Schema.Int.check(
    Schema.isBetween({ minimum: 0, maximum: max_retries_max }),
  ).annotateKey({
    description:
      "Maximum number of automatic retries of a backup that failed before it wrote a snapshot.",
  }),
}

/** The fields of a policy, in the order of its table's columns. */
export const policy_row = {
  id: PolicyId,
  project_id: ProjectId,
  share_id: ShareId.annotateKey({ description: "ID of the share to back up." }),
  /** `target_id` in Shape A, `target_template_id` in Shape B. */
  target_id: Schema.NullOr(TargetId),
  target_template_id: Schema.NullOr(TargetTemplateId),
  /** The domain of the target or the template. */
  domain_id: Schema.NullOr(DomainId),
  ...editable,
  last_tick: Schema.NullOr(Instant).annotateKey({
    description:
      "Last scheduled time for which a backup was made or skipped. Null if there was none, and " +
      "for `as_of`.",
  }),
  /** The policy's backup in progress; null for an `as_of` query. */
  in_flight_backup_id: Schema.NullOr(BackupId),
  created_at: Instant.annotateKey({ description: "Time of creation." }),
  updated_at: Instant.annotateKey({
    description: "Time of the last change to the policy. Scheduled backups do not count.",
  }),
}

/** The fields that define a policy. */
export const policy_fields = {
  ...editable,
  ...Struct.pick(policy_row, ["id", "project_id", "target_id", "target_template_id"]),
}

export const policy_changes = optional(editable)

/** Why a scheduled backup was skipped. */
export const SkipReason = Schema.Literals([
  "quota_exceeded",
  "backup_in_flight",
  "repository_locked",
  "target_unavailable",
])
export type SkipReason = typeof SkipReason.Type

export const DefinePolicy = message("DefinePolicy", policy_fields)
/** Rejected if the share has another policy by now. */
export const UpdatePolicy = message("UpdatePolicy", { policy_id: PolicyId, ...policy_changes })
/** Rejected while a backup of the policy is in progress. */
export const DeletePolicy = message("DeletePolicy", { policy_id: PolicyId, project_id: ProjectId })
/**
 * Starts a backup of the share; rejected while another one is in progress.
 *
 * `policy_id` must be the share's policy, or null for a backup without one. `tick` is the scheduled
 * time, null on demand; a tick that was already used or skipped is rejected.
 */
export const StartShareBackup = message("StartShareBackup", {
  backup_id: BackupId,
  policy_id: Schema.NullOr(PolicyId),
  tick: Schema.NullOr(Instant),
})
/** The share's backup ended, successfully or not. No effect for other backups. */
export const FinishShareBackup = message("FinishShareBackup", { backup_id: BackupId })
/** Skips a tick of the schedule without a backup. */
export const SkipTick = message("SkipTick", {
  policy_id: PolicyId,
  tick: Instant,
  reason: SkipReason,
})

export const PolicyCommand = Schema.Union([
  DefinePolicy,
  UpdatePolicy,
  DeletePolicy,
  StartShareBackup,
  FinishShareBackup,
  SkipTick,
])
export type PolicyCommand = typeof PolicyCommand.Type
