import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import {
  abandonJob,
  admitJob,
  assignJob,
  breakHold,
  cancelJob,
  completeJob,
  failJob,
  failLostJob,
  type JobFacts,
  rejectJob,
  settleJob,
  startJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { queueTargetJob, startFormatUpgrade } from "#actors/share-protection/requests.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { job_steps } from "#schemas/share-protection/job.ts"
import { MarkWorkerDead } from "#schemas/share-protection/worker.ts"
import {
  advance,
  assertFree,
  assertHeld,
  backup_job_id,
  backupNow,
  begin,
  enroll_job_id,
  enrolledTarget,
  factsOf,
  jobNow,
  leaseNow,
  policyNow,
  refused,
  registered,
  requestedBackup,
  requestedRestore,
  restore_job_id,
  restoreNow,
  results,
  scene,
  send,
  targetNow,
  toStep,
  walk,
  without_effect,
} from "../../world/share-protection/deployment.ts"
import { failure, other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import {
  backup_id,
  enrolled,
  jobId,
  new_share_id,
  project_id,
  restore_id,
  snapshot,
  target_id,
} from "../../world/share-protection/samples.ts"

/** The successive holds of the target in these scenarios. */
const held = (fence: number) => ({ worker_id, fence })
const held_by_other = (fence: number) => ({ worker_id: other_worker_id, fence })

describe("the transitions of a job", () => {
  scene("of an enrollment leads to an available target", () =>
    Effect.gen(function* () {
      yield* registered
      yield* walk(enroll_job_id, held(1), results.target_enroll)
      const { status, repository_password_ref, format } = yield* targetNow
      assert.deepEqual(
        { status, repository_password_ref, format },
        { status: "available", format: enrolled.format, repository_password_ref },
      )
      assert.equal(repository_password_ref, enrolled.repository_password_ref)
      assert.equal((yield* jobNow(enroll_job_id)).state, "available")
      yield* assertFree
    }),
  )

  scene("of a backup leads to an available backup, and frees its share", () =>
    Effect.gen(function* () {
      const job = yield* requestedBackup
      assert.equal((yield* backupNow).state, "creating")
      assert.deepEqual((yield* policyNow).backup, { backup_id, policy_id: null })

      yield* send(admitJob(job))
      assert.equal((yield* backupNow).state, "queued")
      yield* send(assignJob(job, held(2)))
      assert.deepEqual((yield* factsOf(backup_job_id)).hold, held(2))
      yield* assertHeld(backup_job_id, held(2))
      assert.equal((yield* leaseNow).holds[0]?.mode, "write")

      yield* send(startJob(job, held(2)))
      assert.equal((yield* backupNow).state, "running")
      for (const to of job_steps.slice(1)) yield* advance(backup_job_id, held(2), to)
      yield* assertHeld(backup_job_id, held(2))
      assert.equal((yield* jobNow(backup_job_id)).state, "releasing")

      yield* send(completeJob(job, held(2), results.backup))
      const { state, engine_snapshot_id } = yield* backupNow
      assert.deepEqual({ state, engine_snapshot_id }, { state: "available", engine_snapshot_id })
      assert.equal(engine_snapshot_id, snapshot.engine_snapshot_id)
      assert.equal((yield* jobNow(backup_job_id)).state, "available")
      assert.isNull((yield* policyNow).backup)
      assert.equal((yield* targetNow).backups, 1)
      assert.equal((yield* leaseNow).fence, 2)
      yield* assertFree
    }),
  )

  scene("of a restore reads its backup until the new share exists", () =>
    Effect.gen(function* () {
      const job = yield* requestedRestore
      assert.deepEqual((yield* backupNow).restores, [restore_id])
      assert.equal((yield* restoreNow).state, "pending")
      yield* send(admitJob(job))
      assert.equal((yield* restoreNow).state, "queued")
      yield* begin(job, held(3))
      assert.equal((yield* restoreNow).state, "running")
      assert.equal((yield* leaseNow).holds[0]?.mode, "read")
      for (const to of job_steps.slice(1)) yield* advance(restore_job_id, held(3), to)
      yield* send(completeJob(job, held(3), results.restore))
      const { state, new_share_id: made } = yield* restoreNow
      assert.deepEqual({ state, made }, { state: "available", made: new_share_id })
      assert.deepEqual((yield* backupNow).restores, [])
      yield* assertFree
    }),
  )

  scene("of a format upgrade keeps backups away until it is through", () =>
    Effect.gen(function* () {
      const job = yield* requestedBackup
      yield* send(startFormatUpgrade(target_id, project_id, jobId(9)))
      assert.isTrue((yield* targetNow).upgrading)
      const upgrade = yield* factsOf(jobId(9))
      yield* begin(upgrade, held(2))
      assert.equal(yield* refused(assignJob(job, held(3))), "svc.repository_locked")
      for (const to of job_steps.slice(1)) yield* advance(jobId(9), held(2), to)
      yield* send(completeJob(upgrade, held(2), results.repo_format_upgrade))
      const { upgrading, format } = yield* targetNow
      assert.deepEqual({ upgrading, format }, { upgrading: false, format: 3 })
      yield* assertFree
    }),
  )

  for (const job_type of ["retention", "maintenance"] as const) {
    scene(`of ${job_type} has the repository alone, and changes nothing but its job`, () =>
      Effect.gen(function* () {
        yield* enrolledTarget
        const before = yield* targetNow
        yield* send([queueTargetJob(jobId(9), job_type, target_id, project_id)])
        const job = yield* factsOf(jobId(9))
        yield* begin(job, held(2))
        assert.equal((yield* leaseNow).holds[0]?.mode, "exclusive")
        for (const to of job_steps.slice(1)) yield* advance(jobId(9), held(2), to)
        yield* send(completeJob(job, held(2), results[job_type]))
        assert.equal((yield* jobNow(jobId(9))).state, "available")
        assert.deepEqual(yield* targetNow, before)
        yield* assertFree
      }),
    )
  }
})

/** A running backup with fence 2. */
const runningBackup = Effect.gen(function* () {
  const job = yield* requestedBackup
  yield* begin(job, held(2))
  yield* advance(backup_job_id, held(2), "provisioning_source")
  return yield* factsOf(backup_job_id)
})

const assertBackupEnded = Effect.gen(function* () {
  assert.equal((yield* backupNow).state, "error")
  assert.isNull((yield* policyNow).backup)
  assert.equal((yield* jobNow(backup_job_id)).state, "error")
})

describe("an end without success", () => {
  scene("that the worker reports frees everything at once", () =>
    Effect.gen(function* () {
      const job = yield* runningBackup
      yield* send(failJob(job, held(2), failure))
      yield* assertBackupEnded
      assert.equal((yield* backupNow).reason, failure.detail)
      assert.deepEqual((yield* jobNow(backup_job_id)).error, failure)
      yield* assertFree
    }),
  )

  scene("of a restore leaves its backup as it was", () =>
    Effect.gen(function* () {
      const job = yield* requestedRestore
      yield* begin(job, held(3))
      yield* send(failJob(job, held(3), failure))
      const { state, reason } = yield* restoreNow
      assert.deepEqual({ state, reason }, { state: "error", reason: failure.detail })
      assert.deepEqual((yield* backupNow).restores, [])
      assert.equal((yield* backupNow).state, "available")
      yield* assertFree
    }),
  )

  scene("of an enrollment is the target's, with its reason", () =>
    Effect.gen(function* () {
      yield* registered
      const job = yield* factsOf(enroll_job_id)
      yield* begin(job, held(1))
      yield* send(failJob(job, held(1), failure))
      const { status, reason } = yield* targetNow
      assert.deepEqual({ status, reason }, { status: "error", reason: failure.detail })
      yield* assertFree
    }),
  )

  scene("of a format upgrade gives the target back in its old format", () =>
    Effect.gen(function* () {
      yield* enrolledTarget
      yield* send(startFormatUpgrade(target_id, project_id, jobId(9)))
      const job = yield* factsOf(jobId(9))
      yield* begin(job, held(2))
      yield* send(failJob(job, held(2), failure))
      const { upgrading, format } = yield* targetNow
      assert.deepEqual({ upgrading, format }, { upgrading: false, format: enrolled.format })
    }),
  )

  scene("before any worker took it needs none", () =>
    Effect.gen(function* () {
      const job = yield* requestedBackup
      yield* send(rejectJob(job, failure))
      yield* assertBackupEnded
      yield* assertFree
    }),
  )

  scene("by a cancel of what waits leaves nothing", () =>
    Effect.gen(function* () {
      yield* send(cancelJob(yield* requestedBackup))
      yield* assertBackupEnded
      assert.isTrue((yield* jobNow(backup_job_id)).cancelled)
      assert.equal((yield* backupNow).reason, "cancelled")
      yield* assertFree
    }),
  )

  for (const [what, end] of [
    ["by a cancel", (job: JobFacts) => cancelJob(job)],
    ["by the sweep", (job: JobFacts) => abandonJob(job, held(2), failure)],
  ] as const) {
    scene(`${what} keeps slot and lease until the worker says that its engine stopped`, () =>
      Effect.gen(function* () {
        const job = yield* runningBackup
        yield* send(end(job))
        yield* assertBackupEnded
        yield* assertHeld(backup_job_id, held(2))

        yield* send([queueTargetJob(jobId(9), "maintenance", target_id, project_id)])
        const next = yield* factsOf(jobId(9))
        assert.equal(yield* refused(assignJob(next, held_by_other(3))), "svc.repository_locked")

        yield* send(settleJob(job, held(2)))
        yield* assertFree
        yield* send(assignJob(next, held_by_other(3)))
        yield* assertHeld(jobId(9), held_by_other(3))
      }),
    )
    scene(`${what} is final for the worker: its later reports of the job are rejected`, () =>
      Effect.gen(function* () {
        const job = yield* runningBackup
        yield* send(end(job))
        const next = toStep(backup_job_id, held(2), "connecting_repository")
        assert.equal(yield* refused(next), "svc.conflict")
        assert.equal(yield* refused(failJob(job, held(2), failure)), "svc.conflict")
        assert.equal(yield* refused(completeJob(job, held(2), results.backup)), "svc.conflict")
        yield* assertHeld(backup_job_id, held(2))
      }),
    )
  }

  scene("by the worker's death takes its slot and its lease with it", () =>
    Effect.gen(function* () {
      const job = yield* runningBackup
      yield* send([address(Worker, worker_id, MarkWorkerDead.make({ reason: "silent" }))])
      yield* assertHeld(backup_job_id, held(2))
      yield* send(failLostJob(job, held(2), failure))
      yield* assertBackupEnded
      yield* assertFree
      assert.equal(yield* refused(completeJob(job, held(2), results.backup)), "svc.conflict")
    }),
  )

  scene("before the worker's death: what it held still is taken from it", () =>
    Effect.gen(function* () {
      const job = yield* runningBackup
      yield* send(cancelJob(job))
      yield* send([address(Worker, worker_id, MarkWorkerDead.make({ reason: "silent" }))])
      assert.equal(yield* refused(failLostJob(job, held(2), failure)), "svc.conflict")
      yield* send(breakHold(job, held(2), "silent"))
      yield* assertFree
      yield* without_effect(breakHold(job, held(2), "silent"))
    }),
  )
})
