import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import { cancelJob, retryJob, settleJob } from "#actors/share-protection/jobs/transitions.ts"
import {
  deleteTarget,
  queueTargetJob,
  startFormatUpgrade,
} from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { LoseBackup } from "#schemas/share-protection/backup.ts"
import { UpdateTarget } from "#schemas/share-protection/target.ts"
import { BootWorker, DrainWorker } from "#schemas/share-protection/worker.ts"
import {
  ask,
  begin,
  conducted,
  dispatch_options,
  pass,
  ready,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  backUp,
  backupId,
  finish,
  madeBackup,
  maintain,
  ownJobId,
  pendingTarget,
  restoreJobId,
  restoreOf,
  shareId,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf, jobNow, workerNow } from "../../world/share-protection/deployment.ts"
import { other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import { domain_id, jobId, project_id, target } from "../../world/share-protection/samples.ts"

const dispatching = begin(dispatch(dispatch_options))

/** The worker of each job; null: unassigned. */
const workersOf = (...jobs: ReadonlyArray<ReturnType<typeof jobId>>) =>
  Effect.forEach(jobs, (id) => Effect.map(jobNow(id), (job) => job.worker_id))

/**
 * Two in-place restores into one share, from targets 1 and 2. Returns the values that tests need.
 */
const twoInPlace = Effect.gen(function* () {
  const agent = yield* ready(worker_id, 9)
  agent.has_it = true
  for (const target of [1, 2]) yield* availableTarget(target)
  const share_id = shareId(1)
  yield* madeBackup(1, 1)
  yield* madeBackup(2, 2, { share_id })
  const in_place = { mode: "in_place", force: true, share_id } as const
  yield* restoreOf(1, 1, 1, in_place)
  yield* restoreOf(2, 2, 2, in_place)
  return in_place
})

describe("dispatch", () => {
  conducted(
    "assigns a queued job to a worker with a free slot at once, and sends its order",
    Effect.gen(function* () {
      yield* dispatching
      const { offered } = yield* ready(worker_id)
      yield* availableTarget(1)
      yield* backUp(1, 1)
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id, fence: 1, state: "queued" })
      assert.deepEqual((yield* workerNow()).running_jobs, [{ job_id: jobId(1), fence: 1 }])
      assert.deepEqual(
        offered.map(({ job_id, job_type, attempt, fence }) => [job_id, job_type, attempt, fence]),
        [[jobId(1), "backup", 1, 1]],
      )
      assert.deepEqual(yield* types("backup"), ["BackupRequested", "BackupQueued"])
    }),
  )

  conducted(
    "assigns waiting jobs when a worker registers, and when a slot is freed",
    Effect.gen(function* () {
      yield* dispatching
      for (const number of [1, 2]) yield* availableTarget(number)
      for (const number of [1, 2]) yield* backUp(number, number)
      assert.deepEqual(yield* workersOf(jobId(1), jobId(2)), [null, null])
      yield* ready(worker_id, 1)
      assert.deepEqual(yield* workersOf(jobId(1), jobId(2)), [worker_id, null])
      yield* finish(jobId(1))
      assert.deepEqual(yield* workersOf(jobId(2)), [worker_id])
    }),
  )

  conducted(
    "holds a job until its target is enrolled, and then admits it",
    Effect.gen(function* () {
      yield* dispatching
      yield* ready(worker_id)
      yield* pendingTarget(1, { trust_id: null, job_id: ownJobId(1) })
      yield* ask(queueTargetJob(ownJobId(1), "target_enroll", targetId(1), project_id))
      yield* backUp(1, 1)
      assert.deepEqual(yield* workersOf(ownJobId(1), jobId(1)), [null, null])
      const { trust_id } = target
      yield* ask(address(Target, targetId(1), UpdateTarget.make({ trust_id })))
      assert.deepEqual(yield* workersOf(ownJobId(1), jobId(1)), [worker_id, null])
      assert.deepEqual(yield* types("backup"), ["BackupRequested"])
      yield* finish(ownJobId(1))
      assert.deepEqual(yield* workersOf(jobId(1)), [worker_id])
      assert.deepEqual(yield* types("backup"), ["BackupRequested", "BackupQueued"])
    }),
  )

  conducted(
    "assigns no job to a draining, booting or dead worker",
    Effect.gen(function* () {
      yield* dispatching
      yield* ready(worker_id)
      yield* ask(address(Worker, worker_id, DrainWorker.make({})))
      const boot = { project_id, domain_id, image: "image-1" }
      yield* ask(address(Worker, other_worker_id, BootWorker.make(boot)))
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* pass("4 minutes")
      assert.deepEqual(yield* workersOf(jobId(1)), [null])
      assert.deepEqual(yield* types("lease"), [])
    }),
  )

  conducted(
    "fills the worker with the most free slots, and never exceeds its slots",
    Effect.gen(function* () {
      yield* dispatching
      for (const number of [1, 2, 3, 4, 5]) yield* availableTarget(number)
      yield* ready(worker_id, 1)
      yield* ready(other_worker_id, 3)
      for (const number of [1, 2, 3, 4, 5]) yield* backUp(number, number)
      const jobs = [1, 2, 3, 4, 5].map(jobId)
      const first = [other_worker_id, other_worker_id]
      const [one, two, ...others] = yield* workersOf(...jobs)
      assert.deepEqual([one, two], first)
      assert.sameMembers(others, [worker_id, other_worker_id, null])
    }),
  )

  conducted(
    "allows one writer per repository, with concurrent readers",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(1)
      yield* madeBackup(1, 1)
      yield* madeBackup(2, 1)
      yield* ready(worker_id, 5)
      yield* backUp(3, 1)
      yield* backUp(4, 1)
      yield* restoreOf(1, 1)
      yield* restoreOf(2, 1)
      assert.deepEqual(yield* workersOf(jobId(3), jobId(4), restoreJobId(1), restoreJobId(2)), [
        worker_id,
        null,
        worker_id,
        worker_id,
      ])
      yield* finish(jobId(3))
      assert.deepEqual(yield* workersOf(jobId(4)), [worker_id])
    }),
  )

  conducted(
    "allows one restore at a time into a share, with no concurrent backup",
    Effect.gen(function* () {
      yield* dispatching
      const in_place = yield* twoInPlace
      const { share_id } = in_place
      yield* backUp(3, 2, { share_id })
      // Neither of these writes into that share.
      yield* restoreOf(1, 1, 3)
      yield* restoreOf(1, 1, 4, { ...in_place, dry_run: true })
      yield* restoreOf(1, 1, 5, { ...in_place, share_id: shareId(5) })
      const first = [1, 2, 3, 4, 5].map(restoreJobId)
      assert.deepEqual(yield* workersOf(...first, jobId(3)), [
        worker_id,
        null,
        worker_id,
        worker_id,
        worker_id,
        null,
      ])
      // The job has ended for its tenant, but its engine has not stopped yet.
      yield* ask(...cancelJob(yield* factsOf(restoreJobId(1))))
      assert.deepEqual(yield* workersOf(restoreJobId(2), jobId(3)), [null, null])
      yield* ask(...settleJob(yield* factsOf(restoreJobId(1)), { worker_id, fence: 1 }))
      assert.deepEqual(yield* workersOf(restoreJobId(2), jobId(3)), [worker_id, null])
      yield* finish(restoreJobId(2))
      assert.deepEqual(yield* workersOf(jobId(3)), [worker_id])
      yield* restoreOf(1, 1, 6, in_place)
      assert.deepEqual(yield* workersOf(restoreJobId(6)), [null])
    }),
  )

  conducted(
    "starts no restore while a cancelled engine still writes, after a retry or a restart",
    Effect.gen(function* () {
      const conductor = yield* dispatching
      yield* twoInPlace
      yield* ask(...cancelJob(yield* factsOf(restoreJobId(1))))
      yield* Fiber.interrupt(conductor)
      const next = yield* dispatching
      assert.deepEqual(yield* workersOf(restoreJobId(2)), [null])
      const again = { automatic: false, policy_id: null }
      yield* ask(...retryJob(yield* factsOf(restoreJobId(1)), again))
      assert.deepEqual(yield* workersOf(restoreJobId(2)), [null])
      // The lease's latest event is about another hold of the repository.
      yield* restoreOf(1, 1, 3)
      yield* Fiber.interrupt(next)
      yield* dispatching
      assert.deepEqual(yield* workersOf(restoreJobId(2)), [null])
      yield* ask(...settleJob(yield* factsOf(restoreJobId(1)), { worker_id, fence: 1 }))
      assert.sameMembers(yield* workersOf(restoreJobId(1), restoreJobId(2)), [worker_id, null])
    }),
  )

  conducted(
    "lets no job overtake an exclusive one",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(1)
      yield* madeBackup(1, 1)
      yield* ready(worker_id, 5)
      yield* restoreOf(1, 1)
      yield* maintain(1, 1)
      yield* restoreOf(1, 1, 2)
      assert.deepEqual(yield* workersOf(restoreJobId(1), ownJobId(1), restoreJobId(2)), [
        worker_id,
        null,
        null,
      ])
      yield* finish(restoreJobId(1))
      assert.deepEqual(yield* workersOf(ownJobId(1), restoreJobId(2)), [worker_id, null])
      yield* finish(ownJobId(1))
      assert.deepEqual(yield* workersOf(restoreJobId(2)), [worker_id])
    }),
  )

  conducted(
    "continues when a repository at its maximum of readers loses one",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(1)
      yield* madeBackup(1, 1)
      yield* ready(worker_id, 100)
      const all = Array.from({ length: 51 }, (_, index) => index + 1)
      for (const nth of all) yield* restoreOf(1, 1, nth)
      assert.lengthOf((yield* workerNow()).running_jobs, 50)
      assert.deepEqual(yield* workersOf(restoreJobId(51)), [null])
      yield* finish(restoreJobId(7))
      assert.deepEqual(yield* workersOf(restoreJobId(51)), [worker_id])
    }),
  )

  conducted(
    "starts only the upgrade on a target during a format upgrade",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* ask(...startFormatUpgrade(targetId(1), project_id, ownJobId(1)))
      yield* ready(worker_id, 5)
      assert.deepEqual(yield* workersOf(jobId(1), ownJobId(1)), [null, worker_id])
      yield* finish(ownJobId(1))
      assert.deepEqual(yield* workersOf(jobId(1)), [worker_id])
    }),
  )

  conducted(
    "resumes after a kill, and assigns nothing twice",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* backUp(1, 1)
      const { offered } = yield* ready(worker_id)
      for (let turns = 0; turns < 60; turns++) {
        const running = yield* Effect.forkScoped(Effect.scoped(dispatching))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(running)
      }
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      const fences = new Set(offered.map(({ fence }) => fence))
      assert.deepEqual([...fences], [1])
    }),
  )
})

describe("a job that no worker can do", () => {
  conducted(
    "ends if its target was deleted while it was being queued",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* maintain(1, 1)
      yield* ask(...deleteTarget(targetId(1), target, []))
      yield* dispatching
      yield* ready(worker_id)
      const { state, error } = yield* jobNow(ownJobId(1))
      assert.deepInclude({ state, code: error?.code }, { state: "error", code: "svc.not_found" })
      yield* ask(...retryJob(yield* factsOf(ownJobId(1)), { automatic: false, policy_id: null }))
      assert.deepInclude(yield* jobNow(ownJobId(1)), { state: "error", attempt: 2 })
    }),
  )

  conducted(
    "ends if the snapshot of its backup is lost",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(1)
      yield* madeBackup(1, 1)
      yield* restoreOf(1, 1)
      yield* ask(address(Backup, backupId(1), LoseBackup.make({ reason: "Gone." })))
      yield* ready(worker_id)
      const { state, error } = yield* jobNow(restoreJobId(1))
      assert.deepInclude({ state, code: error?.code }, { state: "error", code: "svc.not_found" })
      assert.equal((yield* types("restore")).at(-1), "RestoreFailed")
      assert.deepEqual((yield* workerNow()).running_jobs, [])
    }),
  )
})
