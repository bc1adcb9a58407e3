import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Job } from "#actors/share-protection/job.ts"
import { Ledger, ledgerAfter } from "#actors/share-protection/ledger.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import {
  adoptBackup,
  type Batch,
  createTarget,
  definePolicy,
  deleteBackup,
  deletePolicy,
  expireBackups,
  requestBackup,
  requestRestore,
  restartEnrollment,
  startFormatUpgrade,
  testBackup,
  undeleteBackup,
} from "#actors/share-protection/requests.ts"
import { Log } from "#events/log.ts"
import { PolicyDeleted } from "#events/share-protection/policy.ts"
import { type JobId, TargetId } from "#schemas/share-protection/id.ts"
import { QueueJob } from "#schemas/share-protection/job.ts"
import {
  backupNow,
  deployment,
  restoreNow,
  send,
  targetNow,
} from "../../world/share-protection/deployment.ts"
import {
  create,
  failed,
  limit,
  made,
  requestedBackup,
  shared_bucket,
} from "../../world/share-protection/request-scenes.ts"
import {
  adopted,
  at,
  backup_id,
  job_id,
  jobId,
  other_backup_id,
  other_job_id,
  policy,
  policy_id,
  project_id,
  restore,
  restore_id,
  share_id,
  snapshot,
  target,
  target_id,
} from "../../world/share-protection/samples.ts"

const { engine_snapshot_id } = snapshot
const gone = { backup_id, engine_snapshot_id }
const other = { backup_id: other_backup_id, engine_snapshot_id }
const going = { project_id, target_id, backups: [gone, other], job_id: jobId(3) }

/** A job of the target itself. */
const of_target = {
  resource_type: "target" as const,
  project_id,
  resource_id: target_id,
  target_id,
  share_id: null,
  backup_id: null,
  max_retries: 0,
  forget: [],
}

const backup_place = { backup_id, project_id, share_id, target_id }

/** A job of one backup. */
const of_backup = {
  resource_type: "backup" as const,
  resource_id: backup_id,
  ...backup_place,
  max_retries: 0,
  forget: [],
}

const cases: ReadonlyArray<readonly [string, Batch, JobId, Omit<typeof QueueJob.Type, "type">]> = [
  ["a target's creation", create, job_id, { ...of_target, job_type: "target_enroll" }],
  [
    "the creation of a target that projects share",
    createTarget(target_id, shared_bucket, limit),
    job_id,
    { ...of_target, project_id: null, job_type: "target_enroll" },
  ],
  [
    "another enrollment",
    restartEnrollment(target_id, project_id, other_job_id),
    other_job_id,
    { ...of_target, job_type: "target_enroll" },
  ],
  [
    "an upgrade",
    startFormatUpgrade(target_id, project_id, other_job_id),
    other_job_id,
    { ...of_target, job_type: "repo_format_upgrade" },
  ],
  [
    "a backup",
    requestBackup({ ...requestedBackup, policy_id, max_retries: 3 }, limit),
    requestedBackup.job_id,
    {
      job_type: "backup",
      project_id,
      resource_type: "backup",
      resource_id: backup_id,
      target_id,
      share_id,
      backup_id,
      max_retries: 3,
      forget: [],
    },
  ],
  [
    "a restore",
    requestRestore(restore_id, restore),
    job_id,
    {
      job_type: "restore",
      project_id,
      resource_type: "restore",
      resource_id: restore_id,
      target_id,
      share_id,
      backup_id,
      max_retries: 0,
      forget: [],
    },
  ],
  [
    "an expiry",
    expireBackups(going),
    going.job_id,
    { ...of_target, job_type: "retention", max_retries: 5, forget: [gone, other] },
  ],
  [
    "a backup's deletion",
    deleteBackup(
      backup_id,
      { project_id, target_id },
      { expired: false, forget: { ...gone, job_id } },
      at,
    ),
    job_id,
    { ...of_target, job_type: "retention", max_retries: 5, forget: [gone] },
  ],
  [
    "a wish to have a backup back",
    undeleteBackup(job_id, backup_place, limit),
    job_id,
    { ...of_backup, job_type: "undelete" },
  ],
  [
    "a restore test",
    testBackup(job_id, backup_place),
    job_id,
    { ...of_backup, job_type: "restore_test" },
  ],
]

describe("the queued job", () => {
  for (const [of, batch, id, fields] of cases) {
    it(`by ${of} has all fields`, () => {
      const queued = batch.filter(({ to }) => to === Job)
      assert.deepEqual(queued, [{ to: Job, id, command: QueueJob.make(fields) }])
    })
  }
})

const ledgerNow = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(`${Ledger.name}.${project_id}`)
  assert.isDefined(last)
  return yield* ledgerAfter(log, last)
})

/** The counts in the project's ledger and in the target. */
const counted = Effect.gen(function* () {
  const { policies, backups } = yield* targetNow
  return { ledger: Struct.omit(yield* ledgerNow, ["state"]), target: { policies, backups } }
})

describe("the ledger", () => {
  const scene = (
    name: string,
    batches: ReadonlyArray<Batch>,
    counts: { targets?: number; policies?: number; backups?: number },
  ) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        yield* Effect.forEach(batches, send)
        const { policies = 0, backups = 0, targets = 1 } = counts
        assert.deepEqual(yield* counted, {
          ledger: { targets, policies, backups, templates: 0 },
          target: { policies, backups },
        })
      }).pipe(Effect.provide(deployment)),
    )
  const define = definePolicy(share_id, policy, limit)
  const adopt = adoptBackup(other_backup_id, adopted, limit)
  const of = { project_id, target_id }

  scene("is a target", [create], {})
  scene("is a policy, and one fewer when it is deleted", [create, define], { policies: 1 })
  scene("is no policy that was deleted", [create, define, deletePolicy(share_id, policy)], {})
  scene("is a backup that was made, and one that was adopted", [...made(), adopt], { backups: 2 })
  scene("is a backup that failed", failed, { backups: 1 })
  scene("is none of the backups that expired", [...made(), adopt, expireBackups(going)], {})
  scene(
    "is the other one when one was deleted",
    [...made(), adopt, deleteBackup(backup_id, of, { expired: false }, at)],
    { backups: 1 },
  )
  scene(
    "is the other one when one expired and then was deleted",
    [
      ...made(),
      adopt,
      expireBackups({ ...going, backups: [gone] }),
      deleteBackup(backup_id, of, { expired: true }, at),
    ],
    { backups: 1 },
  )
  scene(
    "is by project and by target",
    [...made(), createTarget(TargetId.make(restore_id), { ...target, job_id: jobId(8) }, limit)],
    { targets: 2, backups: 1 },
  )
})

describe("the options of a request", () => {
  it.effect("are in the backup and in the restore", () =>
    Effect.gen(function* () {
      yield* Effect.forEach(made(), send)
      const wanted = Struct.omit(requestedBackup, ["tick", "max_retries", "backup_id"])
      const backup = yield* backupNow
      assert.deepEqual({ ...backup, ...wanted }, backup)
      yield* send(requestRestore(restore_id, { ...restore, job_id: jobId(3) }))
      const after = yield* restoreNow
      assert.deepEqual({ ...after, ...restore, job_id: jobId(3) }, after)
    }).pipe(Effect.provide(deployment)),
  )

  it.effect("is whose policy is deleted", () =>
    Effect.gen(function* () {
      yield* Effect.forEach([create, definePolicy(share_id, policy, limit)], send)
      yield* send(deletePolicy(share_id, policy))
      const last = yield* (yield* Log).load(`${Policy.name}.${share_id}`)
      assert.deepEqual(last?.commit.events, [PolicyDeleted.make({ policy_id, project_id })])
    }).pipe(Effect.provide(deployment)),
  )
})
