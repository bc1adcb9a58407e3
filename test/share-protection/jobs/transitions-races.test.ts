/** Late and duplicate reports, reports of other attempts, and rejected batches. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import {
  assignJob,
  cancelJob,
  completeJob,
  failJob,
  type Hold,
  type JobFacts,
  retryJob,
  settleJob,
  startJob,
  unassignJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { DeleteBackup } from "#schemas/share-protection/backup.ts"
import { job_steps } from "#schemas/share-protection/job.ts"
import { StartShareBackup } from "#schemas/share-protection/policy.ts"
import {
  advance,
  assertFree,
  assertHeld,
  backup_job_id,
  backupNow,
  begin,
  jobNow,
  policyNow,
  refused,
  requestedBackup,
  requestedRestore,
  restore_job_id,
  restoreNow,
  results,
  scene,
  send,
  toStep,
  without_effect,
} from "../../world/share-protection/deployment.ts"
import { failure, other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import { at, backup_id, other_backup_id, share_id } from "../../world/share-protection/samples.ts"

const first: Hold = { worker_id, fence: 2 }
const second: Hold = { worker_id: other_worker_id, fence: 3 }
const by_hand = { automatic: false, policy_id: null }
const by_itself = { automatic: true, policy_id: null }

/** The backup's job failed on the first worker, which wrote nothing. */
const failedBackup = Effect.gen(function* () {
  const job = yield* requestedBackup
  yield* begin(job, first)
  yield* send(failJob(job, first, failure))
  return job
})

describe("a retry", () => {
  scene("puts the job, its backup and its share back to where they waited", () =>
    Effect.gen(function* () {
      const job = yield* failedBackup
      yield* send(retryJob(job, by_itself))
      const { state, attempt, worker_id, error } = yield* jobNow(backup_job_id)
      assert.deepEqual([state, attempt, worker_id, error], ["queued", 2, null, null])
      assert.equal((yield* backupNow).state, "queued")
      assert.deepEqual((yield* policyNow).backup, { backup_id, policy_id: null })

      yield* begin(job, second)
      for (const to of job_steps.slice(1)) yield* advance(backup_job_id, second, to)
      yield* send(completeJob(job, second, results.backup))
      assert.equal((yield* backupNow).state, "available")
      yield* assertFree
    }),
  )

  scene("by itself happens no oftener than the policy allows", () =>
    Effect.gen(function* () {
      const job = yield* failedBackup
      yield* send(retryJob(job, by_itself))
      yield* begin(job, second)
      yield* send(failJob(job, second, failure))
      assert.equal(yield* refused(retryJob(job, by_itself)), "svc.conflict")
      yield* send(retryJob(job, by_hand))
      assert.equal((yield* jobNow(backup_job_id)).attempt, 3)
    }),
  )

  scene("of a restore reads its backup again", () =>
    Effect.gen(function* () {
      const job = yield* requestedRestore
      yield* send(cancelJob(job))
      yield* send(retryJob(job, by_hand))
      assert.equal((yield* restoreNow).state, "queued")
      assert.lengthOf((yield* backupNow).restores, 1)
      assert.equal((yield* jobNow(restore_job_id)).state, "queued")
    }),
  )

  scene("of a cancelled job begins only when the engine of the attempt before has stopped", () =>
    Effect.gen(function* () {
      const job = yield* requestedBackup
      yield* begin(job, first)
      yield* send(cancelJob(job))
      yield* send(retryJob(job, by_hand))
      assert.equal(yield* refused(assignJob(job, second)), "svc.repository_locked")
      const same_worker = { ...first, fence: 3 }
      assert.equal(yield* refused(assignJob(job, same_worker)), "svc.conflict")
      yield* send(settleJob(job, first))
      yield* send(assignJob(job, second))
      yield* assertHeld(backup_job_id, second)
    }),
  )

  scene("is refused, and nothing of it happens, while the share has another backup under way", () =>
    Effect.gen(function* () {
      const job = yield* failedBackup
      const another = { backup_id: other_backup_id, policy_id: null, tick: null }
      yield* send([address(Policy, share_id, StartShareBackup.make(another))])
      assert.equal(yield* refused(retryJob(job, by_hand)), "svc.conflict")
      assert.equal((yield* backupNow).state, "error")
      assert.equal((yield* jobNow(backup_job_id)).state, "error")
    }),
  )

  scene("is refused, and nothing of it happens, when its backup was deleted", () =>
    Effect.gen(function* () {
      const job = yield* failedBackup
      yield* send([address(Backup, backup_id, DeleteBackup.make({ at, expired: false }))])
      assert.equal(yield* refused(retryJob(job, by_hand)), "svc.not_found")
    }),
  )
})

/** The job is retried, and the second worker runs it. */
const replaced = Effect.gen(function* () {
  const job = yield* failedBackup
  yield* send(retryJob(job, by_hand))
  yield* begin(job, second)
  return job
})

describe("a late report of a replaced worker", () => {
  const reports: Readonly<Record<string, (job: JobFacts) => Batch>> = {
    start: (job) => startJob(job, first),
    step: () => toStep(backup_job_id, first, "provisioning_source"),
    success: (job) => completeJob(job, first, results.backup),
    failure: (job) => failJob(job, first, failure),
  }
  for (const [what, report] of Object.entries(reports)) {
    scene(`is refused: its ${what}`, () =>
      Effect.gen(function* () {
        assert.equal(yield* refused(report(yield* replaced)), "svc.conflict")
        yield* assertHeld(backup_job_id, second)
        assert.equal((yield* backupNow).state, "running")
      }),
    )
  }
  scene("frees nothing of the other worker's: that its engine stopped", () =>
    Effect.gen(function* () {
      yield* without_effect(settleJob(yield* replaced, first))
      yield* assertHeld(backup_job_id, second)
    }),
  )
  scene("frees nothing either when it is the same worker by a later fence", () =>
    Effect.gen(function* () {
      const job = yield* failedBackup
      yield* send(retryJob(job, by_hand))
      const again = { ...first, fence: 3 }
      yield* begin(job, again)
      yield* without_effect(settleJob(job, first))
      yield* assertHeld(backup_job_id, again)
    }),
  )
})

describe("a job that a worker does not accept", () => {
  const assigned = Effect.gen(function* () {
    const job = yield* requestedBackup
    yield* send(assignJob(job, first))
    return job
  })
  scene("is rolled back as a whole, and can be assigned to another worker", () =>
    Effect.gen(function* () {
      const job = yield* assigned
      yield* send(unassignJob(job, first))
      yield* assertFree
      assert.equal(yield* refused(startJob(job, first)), "svc.conflict")
      yield* begin(job, second)
      yield* assertHeld(backup_job_id, second)
    }),
  )
  scene("is not rolled back if the worker accepted it after all: slot and lease stay", () =>
    Effect.gen(function* () {
      const job = yield* assigned
      yield* send(startJob(job, first))
      assert.equal(yield* refused(unassignJob(job, first)), "svc.conflict")
      yield* assertHeld(backup_job_id, first)
    }),
  )
  scene("is not rolled back twice: the second time finds another's hold", () =>
    Effect.gen(function* () {
      const job = yield* assigned
      yield* send(unassignJob(job, first))
      yield* send(assignJob(job, second))
      assert.equal(yield* refused(unassignJob(job, first)), "svc.conflict")
      yield* assertHeld(backup_job_id, second)
    }),
  )
  scene("is freed when it was cancelled meanwhile", () =>
    Effect.gen(function* () {
      const job = yield* assigned
      yield* send(cancelJob(job))
      yield* assertHeld(backup_job_id, first)
      yield* send(unassignJob(job, first))
      yield* assertFree
      assert.equal(yield* refused(startJob(job, first)), "svc.conflict")
      assert.equal((yield* jobNow(backup_job_id)).state, "error")
    }),
  )
})
