/**
 * A rollout: replaces the workers of an old image, one at a time, domain by domain, canary first.
 *
 * Source: document 2 §2 Rollout descriptor, §6, §9; DECISIONS, document 2, rollouts.
 */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { DomainId, RolloutId, WorkerId } from "#schemas/share-protection/id.ts"
import { Count, Name, Reason } from "#schemas/share-protection/text.ts"

/** Maximum number of domains in a rollout: they are in its snapshot. */
export const rollout_domains_max = 100

export const RolloutState = Schema.Literals(["running", "succeeded", "halted"])
export type RolloutState = typeof RolloutState.Type

/** Canary first; no duplicates. */
export const RolloutDomains = Schema.Array(DomainId).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(rollout_domains_max),
  Schema.makeFilter<ReadonlyArray<string>>(
    (ids) => new Set(ids).size === ids.length || "each domain once",
  ),
)

/** The fields of a rollout, in the order of its table's columns. */
export const rollout_row = {
  id: RolloutId,
  image: Name.annotateKey({ description: "The image" }),
  domain_ids: RolloutDomains.annotateKey({
    description: "The domains in order, the canary first; `default` has the workers of none",
    flag: "domain-id",
  }),
  /** Index of the present domain; the number of domains when all are complete. */
  domain_index: Count,
  state: RolloutState,
  replaced_workers: Count,
  /** Why it halted, or that there was nothing to replace. */
  reason: Schema.NullOr(Reason),
  created_at: Instant,
  updated_at: Instant,
}
export type RolloutRow = Schema.Struct<typeof rollout_row>["Type"]

export const Rollout = Schema.Struct({
  ...Struct.omit(rollout_row, ["domain_index"]),
  /** The present domain; null when all are complete. */
  current_domain_id: Schema.NullOr(DomainId),
})
export type Rollout = typeof Rollout.Type

const replacement = { old_worker_id: WorkerId, new_worker_id: WorkerId }

export const NewRollout = Schema.Struct(Struct.pick(rollout_row, ["image", "domain_ids"]))
export const CreateRollout = message("CreateRollout", NewRollout.fields)
/** Drains an old worker of the present domain and boots its replacement. One at a time. */
export const StartReplacement = message("StartReplacement", replacement)
/** The new worker is ready, and the old one retires. */
export const CompleteReplacement = message("CompleteReplacement", replacement)
/** The new worker failed to boot: the rollout halts. */
export const FailReplacement = message("FailReplacement", { ...replacement, reason: Reason })
/** The present domain has no worker of an old image left. */
export const CompleteRolloutDomain = message("CompleteRolloutDomain", { domain_id: DomainId })

export const RolloutCommand = Schema.Union([
  CreateRollout,
  StartReplacement,
  CompleteReplacement,
  FailReplacement,
  CompleteRolloutDomain,
])
export type RolloutCommand = typeof RolloutCommand.Type
