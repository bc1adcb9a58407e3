import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type AnyMachineSnapshot, initialTransition, transition } from "xstate"
import { publishedOf } from "#projections/published-events.ts"
import { published as publications } from "#projections/share-protection/published.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import type { Message } from "#schemas/message.ts"
import { published as types } from "#schemas/share-protection/published.ts"
import { histories } from "../../world/histories.ts"
import { type Happening, happenings } from "../../world/share-protection/happenings.ts"
import { queued } from "../../world/share-protection/job-samples.ts"
import { recorded, second } from "../../world/share-protection/read-model.ts"
import {
  backup,
  job_id,
  policy_id,
  project_id,
  share_id,
  target,
  target_id,
  uuid,
} from "../../world/share-protection/samples.ts"
import {
  completed,
  created,
  upgrade_started,
  upgraded,
} from "../../world/share-protection/target-samples.ts"

type Kind = keyof typeof happenings
type Type = keyof typeof types

/** The published type of each event; other events are not published. */
const published_types: Readonly<Record<string, Type>> = {
  TargetCreated: "target_created",
  TargetUpdated: "target_updated",
  TargetEnrolled: "target_enrolled",
  TargetEnrollmentFailed: "target_enrollment_failed",
  TargetFormatUpgraded: "target_repo_format_upgraded",
  TargetDeleted: "target_deleted",
  PolicyDefined: "policy_created",
  PolicyUpdated: "policy_updated",
  PolicyDeleted: "policy_deleted",
  TickSkipped: "scheduled_backup_skipped",
  BackupRequested: "backup_requested",
  BackupStarted: "backup_started",
  BackupCompleted: "backup_completed",
  BackupFailed: "backup_failed",
  BackupExpired: "backup_expired",
  BackupDeleted: "backup_deleted",
  BackupAdopted: "backup_adopted",
  BackupLost: "backup_lost",
  BackupUndeleted: "backup_undeleted",
  BackupRestoreTested: "backup_restore_tested",
  BackupRestoreTestFailed: "backup_restore_test_failed",
  RestoreRequested: "restore_requested",
  RestoreStarted: "restore_started",
  RestoreCompleted: "restore_completed",
  RestoreFailed: "restore_failed",
  JobQueued: "job_queued",
  JobStarted: "job_started",
  JobCompleted: "job_completed",
  JobFailed: "job_failed",
  JobCancelled: "job_cancelled",
  JobRetried: "job_retried",
  WorkerRegistered: "worker_registered",
  WorkerBootFailed: "worker_boot_failed",
  WorkerDrainStarted: "worker_drain_started",
  WorkerRetired: "worker_retired",
  WorkerDied: "worker_died",
  RolloutCreated: "rollout_created",
  RolloutSucceeded: "rollout_succeeded",
  RolloutHalted: "worker_image_rollout_failed",
  SchedulerPaused: "scheduler_paused",
  SchedulerResumed: "scheduler_resumed",
  ReconciliationFinished: "reconciliation_finished",
}

/** Events that only operators see, because no project owns them. */
const operators = new Set(["worker", "rollout", "scheduler", "reconciliation"])

const id_of: Partial<Readonly<Record<Kind, string>>> = { policy: share_id, worker: "worker-1" }

/** The published events of a history, with one commit per event or one in total. */
const tell = (kind: Kind, history: ReadonlyArray<Message>, together = false) => {
  const { machine }: Happening = happenings[kind]
  let [state]: [AnyMachineSnapshot, ...unknown[]] = initialTransition(machine)
  const commits = history.map((event, i) => {
    state = transition(machine, state, event)[0]
    const one = recorded(i + 1, `${kind}.${id_of[kind] ?? uuid(900)}`, second(i), [event])
    const snapshot = { machine: 1, value: state.value, context: state.context as unknown }
    return { ...one, commit: { ...one.commit, snapshot } }
  })
  const last = commits.at(-1)
  const whole = last && [{ ...last, commit: { ...last.commit, events: history } }]
  return (together ? (whole ?? []) : commits).flatMap((one) => publishedOf(publications, one))
}

const histories_max = 150

function* walks({ machine, events, long }: Happening) {
  let walked = 0
  for (const { history } of histories(machine, events, 12)) {
    if (walked++ === histories_max) break
    yield history
  }
  yield* long
}

const all = Object.entries(happenings).flatMap(([kind, happening]) =>
  // The keys are those of the table.
  [...walks(happening)].map((history) => ({ kind: kind as Kind, history })),
)

const strict = { onExcessProperty: "error" } as const

describe("what share protection publishes", () => {
  it("is one event of the listed type per event of the log, in order", () => {
    for (const { kind, history } of all) {
      const wanted = history.flatMap(({ type }) => published_types[type] ?? [])
      for (const together of [false, true]) {
        const found = tell(kind, history, together)
        assert.deepEqual(
          found.map(({ event }) => event.type),
          wanted,
        )
      }
    }
    const ever = new Set(
      all.flatMap(({ kind, history }) => tell(kind, history)).map(({ event }) => event.type),
    )
    assert.deepEqual([...ever].sort(), Object.keys(types).sort())
  })

  it("has exactly the data of its type, and its project", () => {
    for (const { kind, history } of all) {
      for (const { service, aggregate, event } of tell(kind, history)) {
        // The test above checks that the type is listed.
        const type = types[event.type as Type]
        Schema.decodeUnknownSync(type.data, strict)(event.data)
        Schema.decodeUnknownSync(CloudEvent, strict)(JSON.parse(JSON.stringify(event)))
        assert.equal(service, "share-protection")
        assert.equal(aggregate, type.aggregate)
        assert.equal(event.subject, kind === "policy" ? policy_id : (id_of[kind] ?? uuid(900)))
        assert.equal(event.projectid, operators.has(kind) ? undefined : project_id, event.type)
      }
    }
  })

  it("contains no secret, no trust, and no reference to one", () => {
    const text = JSON.stringify(all.map(({ kind, history }) => tell(kind, history)))
    assert.notInclude(text, "/v1/secrets/")
    assert.notInclude(text, target.trust_id)
    assert.notInclude(text, "http")
  })

  it("has the documented payload of a format upgrade", () => {
    const history = [created, completed, upgrade_started, upgraded]
    const [last] = tell("target", history).slice(-1)
    assert.equal(last?.event.type, "target_repo_format_upgraded")
    assert.deepEqual(last?.event.data, {
      target_id: uuid(900),
      project_id,
      from_version: 2,
      to_version: 3,
      job_id: upgraded.job_id,
      occurred_at: second(3),
    })
  })

  it("has a null project for a format upgrade of a shared bucket", () => {
    const shared = { ...created, project_id: null }
    const [last] = tell("target", [shared, completed, upgrade_started, upgraded]).slice(-1)
    assert.isNull(last?.event.data.project_id)
    assert.isUndefined(last?.event.projectid)
  })

  it("has the documented payload of a rollout that failed", () => {
    const [begin, replacing] = happenings.rollout.events
    const halted = happenings.rollout.events.find(({ type }) => type === "RolloutHalted")
    const history = [begin, replacing, halted].filter((event) => event !== undefined)
    const [last] = tell("rollout", history).slice(-1)
    assert.equal(last?.event.type, "worker_image_rollout_failed")
    assert.deepEqual(last?.event.data, {
      rollout_id: uuid(900),
      domain_id: "canary",
      image: "image-2",
      old_worker_id: "old",
      new_worker_id: "new",
      reason: "It did not come up.",
      occurred_at: second(2),
    })
  })

  it("is for operators if a job has no project", () => {
    const ours = { ...queued, project_id: null }
    const [first] = tell("job", [ours])
    assert.equal(first?.event.type, "job_queued")
    assert.isUndefined(first?.event.projectid)
  })

  it("names the changed fields of a target or a policy, not their values", () => {
    const renamed = { type: "TargetUpdated", name: "Another", trust_id: null }
    const [of_target] = tell("target", [created, renamed]).slice(-1)
    assert.deepEqual(of_target?.event.data, { target_id: uuid(900), changed: ["name", "trust_id"] })
    const [of_policy] = tell("policy", happenings.policy.events.slice(0, 2)).slice(-1)
    const changed = ["enabled", "retention"]
    assert.deepEqual(of_policy?.event.data, { policy_id, share_id, changed })
  })

  it("omits missing fields", () => {
    const requested = { type: "BackupRequested", ...backup, policy_id: null }
    const [first] = tell("backup", [requested])
    assert.deepEqual(first?.event.data, { backup_id: uuid(900), share_id, target_id, job_id })
  })
})
