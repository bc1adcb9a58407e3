/**
 * Feeds each short history of each state chart to the read model, whose rows must match the chart.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import type { AnyMachineSnapshot } from "xstate"
import type { BackupContext } from "#actors/share-protection/backup.ts"
import type { DomainContext } from "#actors/share-protection/domain.ts"
import type { JobContext } from "#actors/share-protection/job.ts"
import type { PolicyContext } from "#actors/share-protection/policy.ts"
import type { ReconciliationContext } from "#actors/share-protection/reconciliation.ts"
import type { RestoreContext } from "#actors/share-protection/restore.ts"
import type { RolloutContext } from "#actors/share-protection/rollout.ts"
import type { TargetContext } from "#actors/share-protection/target.ts"
import type { TargetTemplateContext } from "#actors/share-protection/target-template.ts"
import type { WorkerContext } from "#actors/share-protection/worker.ts"
import type { BackupEvent } from "#events/share-protection/backup.ts"
import type { RestoreEvent } from "#events/share-protection/restore.ts"
import { findBackup } from "#projections/share-protection/backup.ts"
import { findDomain } from "#projections/share-protection/domain.ts"
import { findJob } from "#projections/share-protection/job.ts"
import { findPolicy } from "#projections/share-protection/policy.ts"
import { findReconciliation } from "#projections/share-protection/reconciliation.ts"
import { findRestore } from "#projections/share-protection/restore.ts"
import { findRollout } from "#projections/share-protection/rollout.ts"
import { findScheduler } from "#projections/share-protection/scheduler.ts"
import { findTarget } from "#projections/share-protection/target.ts"
import { findTargetTemplate } from "#projections/share-protection/target-template.ts"
import { findWorker } from "#projections/share-protection/worker.ts"
import type { Message } from "#schemas/message.ts"
import {
  BackupId,
  DomainId,
  JobId,
  PolicyId,
  RestoreId,
  RolloutId,
  TargetId,
  TargetTemplateId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import { histories } from "../../world/histories.ts"
import { type Happening, happenings } from "../../world/share-protection/happenings.ts"
import { emptyModel, recorded, second } from "../../world/share-protection/read-model.ts"
import { policy_id, target_id, uuid } from "../../world/share-protection/samples.ts"
import { created } from "../../world/share-protection/target-samples.ts"

const histories_max = 2000
const length_max = 12

type Db = Effect.Success<typeof emptyModel>["db"]
type History = ReadonlyArray<Message>

/** The last event that matches `is`, if any. */
const last = (history: History, is: (type: string) => boolean) => {
  const index = history.findLastIndex(({ type }) => is(type))
  return index < 0 ? undefined : { event: history[index], at: second(index) }
}

/** A row's times: set by its first event and updated by all events except the silent ones. */
const times = (history: History, births: ReadonlyArray<string>, silent: ReadonlyArray<string>) => ({
  created_at: last(history, (type) => births.includes(type))?.at,
  updated_at: last(history, (type) => !silent.includes(type))?.at,
})

interface Pair {
  /** Finds the row of the n-th history. */
  readonly find: (db: Db, n: number) => Effect.Effect<object | undefined>
  /** The expected row. */
  readonly row: (state: AnyMachineSnapshot, history: History, n: number) => object | undefined
  /** The stream's id; a UUID by default. */
  readonly id?: (n: number) => string
  /** The event field that contains the row's own id. */
  readonly own?: string
}

const isGone = ({ value }: AnyMachineSnapshot) => value === "absent" || value === "deleted"

const target: Pair = {
  find: (db, n) => findTarget(db, TargetId.make(uuid(n))),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const { present } = state.value as { present: { enrollment: string } }
    const { vault_secret_map, ...context } = state.context as TargetContext
    return {
      id: uuid(n),
      status: present.enrollment,
      ...Struct.omit(context, ["policies", "backups", "protected_until"]),
      access_key_ref: vault_secret_map?.access_key ?? null,
      secret_key_ref: vault_secret_map?.secret_key ?? null,
      ...times(
        history,
        ["TargetCreated"],
        [
          "TargetUsageMeasured",
          "TargetPolicyRegistered",
          "TargetPolicyDeregistered",
          "TargetBackupRegistered",
          "TargetBackupsDeregistered",
          "TargetLocksExtended",
        ],
      ),
    }
  },
}

const target_template: Pair = {
  find: (db, n) => findTargetTemplate(db, TargetTemplateId.make(uuid(n))),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const context = state.context as TargetTemplateContext
    const referenced = ["TemplateTargetRegistered", "TemplateTargetDeregistered"]
    const named = ["TemplatePolicyRegistered", "TemplatePolicyDeregistered"]
    const at = times(history, ["TargetTemplateCreated"], [...referenced, ...named])
    return { id: uuid(n), ...Struct.omit(context, ["targets", "policies"]), ...at }
  },
}

/** The policy of the n-th history. */
const policyId = (n: number) => PolicyId.make(uuid(1_000_000 + n))

const policy: Pair = {
  own: policy_id,
  find: (db, n) => findPolicy(db, policyId(n)),
  row: (state, history, n) => {
    const { policy, backup, last_tick } = state.context as PolicyContext
    if (policy === null) return undefined
    const is_own = backup?.policy_id === policy_id
    return {
      ...policy,
      id: policyId(n),
      share_id: uuid(n),
      domain_id: null,
      last_tick,
      in_flight_backup_id: is_own ? backup.backup_id : null,
      ...times(
        history,
        ["PolicyDefined"],
        ["ShareBackupStarted", "ShareBackupFinished", "TickSkipped"],
      ),
    }
  },
}

const unmade = {
  crash_consistent: null,
  partial: null,
  bytes: null,
  stored_bytes: null,
  files: null,
  completed_at: null,
}

const backup: Pair = {
  find: (db, n) => findBackup(db, BackupId.make(uuid(n))),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const context = state.context as BackupContext
    const made = last(history, (type) => type === "BackupCompleted" || type === "BackupAdopted")
    const is_expired = state.value === "expired" || state.value === "undeleting"
    const is_made = state.value === "available" || is_expired
    // The chart reached this state through this event.
    const snapshot = made?.event as Extract<BackupEvent, { type: "BackupCompleted" }>
    return {
      id: uuid(n),
      domain_id: null,
      ...unmade,
      status: is_expired ? "expired" : state.value,
      ...Struct.omit(context, ["restores", "crash_consistent_wanted"]),
      recoverable_until: is_expired ? context.protected_until : null,
      ...(is_made ? Struct.pick(snapshot, ["crash_consistent", "partial"]) : {}),
      ...(is_made ? Struct.pick(snapshot, ["bytes", "stored_bytes", "files"]) : {}),
      ...(is_made ? { completed_at: made?.at } : {}),
      expired_at: is_expired ? last(history, (type) => type === "BackupExpired")?.at : null,
      ...times(
        history,
        ["BackupRequested", "BackupAdopted"],
        [
          "BackupRestoreStarted",
          "BackupRestoreFinished",
          "BackupUndeleteStarted",
          "BackupUndeleteFailed",
          "BackupRestoreTested",
          "BackupRestoreTestFailed",
        ],
      ),
    }
  },
}

const restore: Pair = {
  find: (db, n) => findRestore(db, RestoreId.make(uuid(n))),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const end = last(history, (type) => type === "RestoreCompleted")?.event
    // The chart reached this state through this event.
    const result = end as Extract<RestoreEvent, { type: "RestoreCompleted" }>
    const made = state.value === "available" ? Struct.pick(result, ["files", "bytes", "plan"]) : {}
    const at = times(history, ["RestoreRequested"], [])
    const context = state.context as RestoreContext
    return {
      id: uuid(n),
      status: state.value,
      files: null,
      bytes: null,
      plan: null,
      left_alone: null,
      ...context,
      ...made,
      ...at,
    }
  },
}

/** Fields of a job that its row omits. */
const unshown = [
  "max_retries",
  "forget",
  "fence",
  "retries",
  "recasts",
  "may_have_written",
] as const

const job: Pair = {
  find: (db, n) => findJob(db, JobId.make(uuid(n))),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const { error, started, ...context } = state.context as JobContext
    const has_ended = state.value === "available" || state.value === "error"
    return {
      ...Struct.omit(context, [...unshown]),
      id: uuid(n),
      state: state.value,
      error_code: error?.code ?? null,
      error_detail: error?.detail ?? null,
      error_category: error?.category ?? null,
      started_at: started ? last(history, (type) => type === "JobStarted")?.at : null,
      finished_at: has_ended ? second(history.length - 1) : null,
      ...times(history, ["JobQueued"], ["JobRecast"]),
    }
  },
}

const worker: Pair = {
  id: (n) => `w${n}`,
  find: (db, n) => findWorker(db, WorkerId.make(`w${n}`)),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const { running_jobs, ...context } = state.context as WorkerContext
    return {
      id: `w${n}`,
      state: state.value,
      running_jobs: running_jobs.length,
      ...Struct.omit(context, ["image", "reason"]),
      ...times(history, ["never"], ["WorkerJobAssigned", "WorkerJobReleased"]),
      created_at: second(0),
    }
  },
}

const rollout: Pair = {
  find: (db, n) => findRollout(db, RolloutId.make(uuid(n))),
  row: (state, history, n) => {
    if (isGone(state)) return undefined
    const { domain_index, ...context } = state.context as RolloutContext
    return {
      id: uuid(n),
      state: typeof state.value === "string" ? state.value : "running",
      ...Struct.omit(context, ["replacement"]),
      current_domain_id: context.domain_ids[domain_index] ?? null,
      ...times(history, ["RolloutCreated"], []),
    }
  },
}

const domain: Pair = {
  id: (n) => `d${n}`,
  find: (db, n) => findDomain(db, DomainId.make(`d${n}`)),
  row: (state, history, n) => {
    const { settings, applied } = state.context as DomainContext
    return {
      id: `d${n}`,
      ...settings,
      applied_quotas: applied.quotas,
      pending: state.value === "pending",
      applied_at: last(history, (type) => type === "DomainApplied")?.at ?? null,
      ...times(history, ["never"], ["DomainApplied"]),
      created_at: second(0),
    }
  },
}

const scheduler: Pair = {
  id: (n) => `s${n}`,
  find: (db, n) => findScheduler(db, `s${n}`),
  row: ({ value }, history, n) => {
    const paused = value === "paused"
    return { id: `s${n}`, paused, paused_at: paused ? second(history.length - 1) : null }
  },
}

const reconciliation: Pair = {
  id: (n) => `r${n}`,
  find: (db, n) => findReconciliation(db, `r${n}`),
  row: ({ value, context }, _, n) => {
    const { last_started_at, drift, drift_count } = context as ReconciliationContext
    const status = value === "running" ? "running" : "idle"
    return { id: `r${n}`, status, last_run_at: last_started_at, drift, drift_count }
  },
}

const pairs: Readonly<Record<keyof typeof happenings, Pair>> = {
  target,
  "target-template": target_template,
  policy,
  backup,
  restore,
  job,
  worker,
  rollout,
  domain,
  scheduler,
  reconciliation,
}

/** The short histories, followed by the long ones. */
function* walks({ machine, events, long }: Happening) {
  let walked = 0
  for (const walk of histories(machine, events, length_max)) {
    if (walked++ === histories_max) break
    yield walk
  }
  for (const history of long) yield* histories(machine, history, history.length)
}

const walk = (name: keyof typeof happenings) =>
  Effect.gen(function* () {
    const { id = uuid, find, row, own } = pairs[name]
    const model = yield* emptyModel
    // Jobs belong to a target.
    yield* model.tell(`target.${target_id}`, 0, created)
    let n = 100
    let position = 1
    for (const { state, history } of walks(happenings[name])) {
      n++
      // The row's id is unique, so each history needs a different policy.
      const text = JSON.stringify(history)
      const result: History = JSON.parse(own ? text.replaceAll(own, policyId(n)) : text)
      yield* model.tellAll(
        result.map((event, i) => recorded(++position, `${name}.${id(n)}`, second(i), [event])),
      )
      const found = yield* find(model.db, n)
      const types = history.map(({ type }) => type).join(", ")
      assert.deepEqual(found, row(state, history, n), types)
    }
    return n - 100
  })

describe("the rows of each aggregate", () => {
  for (const name of Object.keys(pairs) as Array<keyof typeof pairs>) {
    it.effect(
      `${name}: are what the chart says after each of its ${histories_max} shortest histories`,
      () => Effect.scoped(Effect.map(walk(name), (walked) => assert.isAbove(walked, 10))),
      60_000,
    )
  }
})
