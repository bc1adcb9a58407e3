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
    (ids) => new Set(ids).size === ids.length || "Expected each domain only once",
  ),
)

/** The fields of a rollout, in the order of its table's columns. */
export const rollout_row = {
  id: RolloutId,
  image: Name.annotateKey({ description: "Name of the image to roll out." }),
  domain_ids: RolloutDomains.annotateKey({
    description:
      "IDs of the domains in order, the canary first. default: workers without a domain.",
    flag: "domain-id",
  }),
  /** Index of the current domain; the number of domains when all are complete. */
  domain_index: Count,
  state: RolloutState.annotateKey({
    description: "`halted` if a worker with the new image did not boot in time.",
  }),
  replaced_workers: Count.annotateKey({ description: "Number of workers replaced so far." }),
  reason: Schema.NullOr(Reason).annotateKey({
    description: "Why the rollout halted, or that no worker had to be replaced. Null otherwise.",
  }),
  created_at: Instant.annotateKey({ description: "Time of creation." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
}
export type RolloutRow = Schema.Struct<typeof rollout_row>["Type"]

export const Rollout = Schema.Struct({
  ...Struct.omit(rollout_row, ["domain_index"]),
  current_domain_id: Schema.NullOr(DomainId).annotateKey({
    description: "Domain whose workers are being replaced. Null when all domains are complete.",
  }),
}).annotate({
  identifier: "Rollout",
  description: "The replacement of workers by workers with another image.",
})
export type Rollout = typeof Rollout.Type

const replacement = { old_worker_id: WorkerId, new_worker_id: WorkerId }

export const NewRollout = Schema.Struct(Struct.pick(rollout_row, ["image", "domain_ids"])).annotate(
  { identifier: "NewRollout", description: "The rollout to start." },
)
export const CreateRollout = message("CreateRollout", NewRollout.fields)
/** Drains an old worker of the current domain and boots its replacement. One at a time. */
export const StartReplacement = message("StartReplacement", replacement)
/** The new worker is ready, and the old one retires. */
export const CompleteReplacement = message("CompleteReplacement", replacement)
/** The new worker failed to boot: the rollout halts. */
export const FailReplacement = message("FailReplacement", { ...replacement, reason: Reason })
/** The current domain has no worker of an old image left. */
export const CompleteRolloutDomain = message("CompleteRolloutDomain", { domain_id: DomainId })

export const RolloutCommand = Schema.Union([
  CreateRollout,
  StartReplacement,
  CompleteReplacement,
  FailReplacement,
  CompleteRolloutDomain,
])
export type RolloutCommand = typeof RolloutCommand.Type
