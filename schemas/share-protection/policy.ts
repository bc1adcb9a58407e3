/**
 * A policy: when a share is backed up, where to, and what is kept.
 *
 * Its stream is named by the share, so that a second policy of one share, and a second backup
 * beside one that is under way, meet the version check of the log.
 *
 * Source: document 2 §2 Policy, §4 rules 2 and 3; DECISIONS, document 2, policy, backup create.
 */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
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

/** Attempts beyond the first: document 2 §8. */
const max_retries_max = 10

/** Bytes of the patterns of one policy, as JSON. */
const patterns_bytes_max = 4096
const patterns_max = 256

/** A cron expression of five fields; whether it means something is the scheduler's to say. */
export const Schedule = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(256))

/** Characters between a pattern's brackets: one, or from one to another. */
const ranges = String.raw`(?:(?:[^\\\-\]]|\\[^])(?:-(?:[^\\\-\]]|\\[^]))?)+`
/** One part of a path, by the rules of Go's `filepath.Match`: brackets are closed and not empty. */
const pattern_part = new RegExp(
  String.raw`^(?:[^\\[]|\\[^]|\[(?:\^${ranges}|(?!\^)${ranges})\])*$`,
  "u",
)

/**
 * Whether the engine can read the pattern: one that it cannot fails every backup of the policy.
 * By `..` a backup would be empty: nothing is included by it, or the share itself is excluded.
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
      `at most ${patterns_bytes_max} bytes`,
  ),
)

const editable = {
  name: Name.annotateKey({ description: "Its name" }),
  schedule: Schedule.annotateKey({ description: "When, as a cron expression" }),
  timezone: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(64)).annotateKey({
    description: "Time zone of the schedule; UTC by default",
    examples: ["Europe/Berlin"],
  }),
  retention: Retention,
  enabled: Schema.Boolean.annotateKey({ description: "Whether its schedule runs" }),
  include_patterns: Patterns.annotateKey({ description: "Only these paths", flag: "include" }),
  exclude_patterns: Patterns.annotateKey({ description: "Not these paths", flag: "exclude" }),
  max_retries: Schema.Int.check(
    Schema.isBetween({ minimum: 0, maximum: max_retries_max }),
  ).annotateKey({ description: "Tries after a failure that wrote nothing, 0 to 10" }),
}

/** The fields of a policy, in the order of its table's columns. */
export const policy_row = {
  id: PolicyId,
  project_id: ProjectId,
  share_id: ShareId.annotateKey({ description: "The share" }),
  /** `target_id` in Shape A, `target_template_id` in Shape B. */
  target_id: Schema.NullOr(TargetId),
  target_template_id: Schema.NullOr(TargetTemplateId),
  /** The target's, or the template's. */
  domain_id: Schema.NullOr(DomainId),
  ...editable,
  /** The last time that its schedule asked for and that was taken or skipped; null as of then. */
  last_tick: Schema.NullOr(Instant),
  /** The policy's backup that is under way; null as of then. */
  in_flight_backup_id: Schema.NullOr(BackupId),
  created_at: Instant,
  /** When it was defined or changed; what its schedule does changes nothing of it. */
  updated_at: Instant,
}

/** What a policy is made of. */
export const policy_fields = {
  ...editable,
  ...Struct.pick(policy_row, ["id", "project_id", "target_id", "target_template_id"]),
}

export const policy_changes = optional(editable)

/** Why a scheduled run did not take place. */
export const SkipReason = Schema.Literals([
  "quota_exceeded",
  "backup_in_flight",
  "repository_locked",
  "target_unavailable",
])
export type SkipReason = typeof SkipReason.Type

export const DefinePolicy = message("DefinePolicy", policy_fields)
/** Refused when the share has another policy than that by now. */
export const UpdatePolicy = message("UpdatePolicy", { policy_id: PolicyId, ...policy_changes })
/** Refused while a backup of the policy is under way. */
export const DeletePolicy = message("DeletePolicy", { policy_id: PolicyId, project_id: ProjectId })
/**
 * A backup of the share begins: refused while another one is under way.
 *
 * `policy_id` is null for a backup without a policy, else the share must have that policy.
 * `tick` is the time that the schedule asked for, null for a backup on demand; a tick that was
 * taken or skipped already is refused.
 */
export const StartShareBackup = message("StartShareBackup", {
  backup_id: BackupId,
  policy_id: Schema.NullOr(PolicyId),
  tick: Schema.NullOr(Instant),
})
/** The share's backup ended, one way or the other. Without effect for another than that. */
export const FinishShareBackup = message("FinishShareBackup", { backup_id: BackupId })
/** A tick of the schedule passes without a backup. */
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
