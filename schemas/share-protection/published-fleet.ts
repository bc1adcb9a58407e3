/** The published events of workers, rollouts, the scheduler and reconciliation, for operators. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { DomainId, RolloutId, WorkerId } from "#schemas/share-protection/id.ts"

const described = (description: string) => ({ description })

const reason = Schema.String.annotateKey(described("Reason, as text."))
const occurred_at = Instant.annotateKey(described("Time of the event, RFC 3339 in UTC."))
const domain_id = Schema.optionalKey(DomainId).annotateKey(described("ID of the domain."))

const worker_id = WorkerId.annotateKey(described("ID of the worker."))
const worker = { aggregate: "worker", subject: "the worker" } as const

const rollout = { aggregate: "rollout", subject: "the rollout" } as const
const rollout_fields = {
  rollout_id: RolloutId.annotateKey(described("ID of the rollout.")),
  image: Schema.String.annotateKey(described("Image of the new workers.")),
}

export const published_fleet = {
  worker_registered: {
    ...worker,
    when: "A worker became ready; it now accepts jobs.",
    data: Schema.Struct({
      worker_id,
      domain_id,
      hostname: Schema.String.annotateKey(described("Name of the worker's machine.")),
      image_version: Schema.String.annotateKey(described("Image of the worker.")),
      engine_version: Schema.String.annotateKey(described("Engine of the worker.")),
      capacity_slots: Schema.Int.annotateKey(
        described("Maximum number of concurrent jobs of the worker."),
      ),
    }),
  },
  worker_boot_failed: {
    ...worker,
    when: "A worker's machine failed to boot.",
    data: Schema.Struct({ worker_id, reason }),
  },
  worker_drain_started: {
    ...worker,
    when: "A worker started to drain; it accepts no new jobs, and its running jobs finish.",
    data: Schema.Struct({ worker_id }),
  },
  worker_retired: {
    ...worker,
    when: "A worker was retired after its last job; its machine is deleted.",
    data: Schema.Struct({ worker_id }),
  },
  worker_died: {
    ...worker,
    when: "A worker died; it never becomes ready again.",
    data: Schema.Struct({ worker_id, reason }),
  },
  rollout_created: {
    ...rollout,
    when: "A rollout started; it replaces workers, one domain after the other.",
    data: Schema.Struct({
      ...rollout_fields,
      domain_ids: Schema.Array(Schema.String).annotateKey(
        described("The domains in order, canary first."),
      ),
    }),
  },
  rollout_succeeded: {
    ...rollout,
    when: "A rollout succeeded; all workers run the new image.",
    data: Schema.Struct({
      ...rollout_fields,
      replaced_workers: Schema.Int.annotateKey(described("Number of replaced workers.")),
    }),
  },
  worker_image_rollout_failed: {
    ...rollout,
    when:
      "A new worker failed to boot; the rollout was halted, and the old worker accepts jobs " +
      "again.",
    data: Schema.Struct({
      ...rollout_fields,
      domain_id: DomainId.annotateKey(
        described("ID of the domain in which the rollout was halted."),
      ),
      old_worker_id: WorkerId.annotateKey(described("ID of the worker that was to be replaced.")),
      new_worker_id: WorkerId.annotateKey(described("ID of the worker that failed to boot.")),
      reason,
      occurred_at,
    }),
  },
  scheduler_paused: {
    aggregate: "scheduler",
    subject: "the scheduler",
    when: "The scheduler was paused; no scheduled backups start.",
    data: Schema.Struct({ occurred_at }),
  },
  scheduler_resumed: {
    aggregate: "scheduler",
    subject: "the scheduler",
    when: "The scheduler was resumed; backups that were due during the pause are not made.",
    data: Schema.Struct({ occurred_at }),
  },
  reconciliation_finished: {
    aggregate: "reconciliation",
    subject: "the reconciliation",
    when: "A reconciliation run compared the records with the real resources.",
    data: Schema.Struct({
      drift_count: Schema.Int.annotateKey(described("Number of differences found.")),
    }),
  },
} as const
