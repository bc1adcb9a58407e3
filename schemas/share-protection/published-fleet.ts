/** The published events of workers, rollouts, the scheduler and reconciliation, for operators. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { DomainId, RolloutId, WorkerId } from "#schemas/share-protection/id.ts"

const described = (description: string) => ({ description })

const reason = Schema.String.annotateKey(described("Why, in words."))
const occurred_at = Instant.annotateKey(described("When, RFC 3339 in UTC."))
const domain_id = Schema.optionalKey(DomainId).annotateKey(described("The domain's id."))

const worker_id = WorkerId.annotateKey(described("The worker's id."))
const worker = { aggregate: "worker", subject: "the worker" } as const

const rollout = { aggregate: "rollout", subject: "the rollout" } as const
const rollout_fields = {
  rollout_id: RolloutId.annotateKey(described("The rollout's id.")),
  image: Schema.String.annotateKey(described("The image that workers are replaced with.")),
}

export const published_fleet = {
  worker_registered: {
    ...worker,
    when: "A worker's agent is up: it takes jobs from here on.",
    data: Schema.Struct({
      worker_id,
      domain_id,
      hostname: Schema.String.annotateKey(described("The machine's name.")),
      image_version: Schema.String.annotateKey(described("The image that it runs.")),
      engine_version: Schema.String.annotateKey(described("The engine that it runs.")),
      capacity_slots: Schema.Int.annotateKey(described("Jobs that it runs at the same time.")),
    }),
  },
  worker_boot_failed: {
    ...worker,
    when: "A worker's machine did not come up.",
    data: Schema.Struct({ worker_id, reason }),
  },
  worker_drain_started: {
    ...worker,
    when: "A worker takes no new job; those that it runs finish.",
    data: Schema.Struct({ worker_id }),
  },
  worker_retired: {
    ...worker,
    when: "A worker's last job ended, and its machine goes.",
    data: Schema.Struct({ worker_id }),
  },
  worker_died: {
    ...worker,
    when: "A worker is dead: it never takes part again.",
    data: Schema.Struct({ worker_id, reason }),
  },
  rollout_created: {
    ...rollout,
    when: "Workers are to be replaced, domain by domain.",
    data: Schema.Struct({
      ...rollout_fields,
      domain_ids: Schema.Array(Schema.String).annotateKey(
        described("The domains in order, canary first."),
      ),
    }),
  },
  rollout_succeeded: {
    ...rollout,
    when: "No worker of an older image is left.",
    data: Schema.Struct({
      ...rollout_fields,
      replaced_workers: Schema.Int.annotateKey(described("How many workers were replaced.")),
    }),
  },
  worker_image_rollout_failed: {
    ...rollout,
    when: "A new worker did not come up: the rollout halted, and the old worker takes jobs again.",
    data: Schema.Struct({
      ...rollout_fields,
      domain_id: DomainId.annotateKey(described("The domain that it was at.")),
      old_worker_id: WorkerId.annotateKey(described("The worker that was to be replaced.")),
      new_worker_id: WorkerId.annotateKey(described("The worker that did not come up.")),
      reason,
      occurred_at,
    }),
  },
  scheduler_paused: {
    aggregate: "scheduler",
    subject: "the scheduler",
    when: "No scheduled backup takes place from here on.",
    data: Schema.Struct({ occurred_at }),
  },
  scheduler_resumed: {
    aggregate: "scheduler",
    subject: "the scheduler",
    when: "Scheduled backups take place again; those that were due meanwhile do not.",
    data: Schema.Struct({ occurred_at }),
  },
  reconciliation_finished: {
    aggregate: "reconciliation",
    subject: "the reconciliation",
    when: "What is recorded was compared with what is there.",
    data: Schema.Struct({
      drift_count: Schema.Int.annotateKey(described("How many differences were found.")),
    }),
  },
} as const
