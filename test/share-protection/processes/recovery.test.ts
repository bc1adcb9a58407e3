import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { address } from "#actors/commands.ts"
import { runProcess } from "#actors/process.ts"
import { dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Job } from "#actors/share-protection/job.ts"
import { cancelJob, settleJob } from "#actors/share-protection/jobs/transitions.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { RecordBootFailure } from "#schemas/share-protection/fleet.ts"
import type { JobStep } from "#schemas/share-protection/job.ts"
import { MarkWorkerDead } from "#schemas/share-protection/worker.ts"
import {
  ask,
  begin,
  conducted,
  dispatch_options,
  instant,
  pass,
  ready,
  secondsOf,
  settled,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  backUp,
  complete,
  go,
  pendingTarget,
  start,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf, jobNow, workerNow } from "../../world/share-protection/deployment.ts"
import { other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import { jobId, project_id } from "../../world/share-protection/samples.ts"

const options = { ...dispatch_options, worker_boot_max_failures: 2 }

const dispatching = begin(dispatch(options))

/** A worker with an assigned job, which also runs if a step is given. */
const working = Effect.fnUntraced(function* (to?: JobStep) {
  yield* dispatching
  const agent = yield* ready(worker_id)
  yield* availableTarget(1)
  yield* backUp(1, 1, { max_retries: 1 })
  if (to !== undefined) yield* start(jobId(1), to)
  return agent
})

const die = (id = worker_id) => ask(address(Worker, id, MarkWorkerDead.make({ reason: "silent" })))

const cancel = Effect.gen(function* () {
  yield* ask(...cancelJob(yield* factsOf(jobId(1))))
})

describe("an order", () => {
  conducted(
    "goes to another worker after a rejection, and the first one backs off",
    Effect.gen(function* () {
      yield* dispatching
      const first = yield* ready(worker_id, 9)
      first.offer = "refuses"
      yield* availableTarget(1)
      yield* backUp(1, 1)
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id: null, state: "queued" })
      assert.lengthOf(first.offered, 1)
      const other = yield* ready(other_worker_id, 1)
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id: other_worker_id, fence: 2 })
      assert.lengthOf(other.offered, 1)
    }),
  )

  conducted(
    "is repeated to the only worker after rejections, at growing intervals",
    Effect.gen(function* () {
      yield* dispatching
      const agent = yield* ready(worker_id)
      agent.offer = "refuses"
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* secondsOf("lease", "LeaseAcquired")).slice(0, 6),
        [0, 5, 15, 35, 75, 155],
      )
      assert.isBelow(agent.offered.length, 20)
      agent.offer = "takes"
      yield* pass("5 minutes")
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id })
    }),
  )

  conducted(
    "goes to another worker after its timeout",
    Effect.gen(function* () {
      yield* dispatching
      const first = yield* ready(worker_id, 9)
      first.offer = "is silent"
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* ready(other_worker_id, 1)
      yield* pass("29 seconds")
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id, fence: 1 })
      yield* pass("1 seconds")
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id: other_worker_id, fence: 2 })
    }),
  )

  conducted(
    "is withdrawn if it was accepted but not started",
    Effect.gen(function* () {
      yield* working()
      yield* pass("59 seconds")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      yield* pass("1 seconds")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired", "LeaseReleased", "LeaseAcquired"])
      assert.deepEqual((yield* workerNow()).running_jobs, [{ job_id: jobId(1), fence: 2 }])
    }),
  )
})

describe("a job whose worker dies", () => {
  conducted(
    "is reassigned at once if it had not started",
    Effect.gen(function* () {
      yield* working()
      yield* ready(other_worker_id)
      yield* die()
      assert.deepInclude(yield* jobNow(jobId(1)), { worker_id: other_worker_id, fence: 2 })
      assert.deepEqual((yield* workerNow()).running_jobs, [])
    }),
  )

  conducted(
    "fails when its worker is proven dead, one deadline later, and is held until then",
    Effect.gen(function* () {
      yield* working("transferring")
      yield* die()
      yield* pass("59 seconds")
      assert.equal((yield* jobNow(jobId(1))).state, "transferring")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      yield* pass("1 seconds")
      const { state, error } = yield* jobNow(jobId(1))
      assert.deepEqual([state, error?.code], ["error", "svc.worker_unavailable"])
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired", "LeaseBroken"])
      assert.deepEqual((yield* workerNow()).running_jobs, [])
      assert.equal((yield* types("backup")).at(-1), "BackupFailed")
    }),
  )

  const steps = [
    ["connecting_repository", true],
    ["transferring", false],
    ["releasing", false],
  ] as const
  for (const [step, wrote_nothing] of steps) {
    conducted(
      `has ${wrote_nothing ? "provably written nothing" : "maybe written"} in ${step}`,
      Effect.gen(function* () {
        yield* working(step)
        yield* die()
        yield* pass("60 seconds")
        assert.equal((yield* jobNow(jobId(1))).error?.wrote_nothing, wrote_nothing)
      }),
    )
  }

  conducted(
    "completes if its worker, wrongly declared dead, reports in time",
    Effect.gen(function* () {
      yield* working("transferring")
      yield* die()
      yield* pass("30 seconds")
      yield* go(jobId(1), "finalizing")
      yield* go(jobId(1), "releasing")
      yield* complete(jobId(1))
      yield* pass("60 seconds")
      assert.equal((yield* jobNow(jobId(1))).state, "available")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired", "LeaseReleased"])
    }),
  )
})

describe("a job that is cancelled", () => {
  conducted(
    "is stopped, and keeps its slot and its hold until its agent frees them",
    Effect.gen(function* () {
      const agent = yield* working("transferring")
      agent.has_it = true
      yield* cancel
      assert.deepEqual(agent.cancelled, [[jobId(1), 1]])
      yield* pass("10 seconds")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      yield* ask(...settleJob(yield* factsOf(jobId(1)), { worker_id, fence: 1 }))
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired", "LeaseReleased"])
      yield* pass("10 minutes")
      assert.lengthOf(agent.cancelled, 1)
    }),
  )

  conducted(
    "is freed if its agent does not run it",
    Effect.gen(function* () {
      yield* working("transferring")
      yield* cancel
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired", "LeaseReleased"])
      assert.deepEqual((yield* workerNow()).running_jobs, [])
    }),
  )

  conducted(
    "is stopped again while its agent is silent, and broken when the worker is proven dead",
    Effect.gen(function* () {
      const agent = yield* working("transferring")
      agent.has_it = "is silent"
      yield* cancel
      yield* pass("100 seconds")
      assert.isAtLeast(agent.cancelled.length, 3)
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      yield* die()
      yield* pass("59 seconds")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      yield* pass("1 seconds")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired", "LeaseBroken"])
    }),
  )

  conducted(
    "is stopped only if the log confirms its end",
    Effect.gen(function* () {
      const log = yield* Log
      const agent = yield* ready(worker_id)
      yield* availableTarget(1)
      yield* backUp(1, 1)
      const running = yield* begin(dispatch(options))
      yield* start(jobId(1))
      running.interruptUnsafe()
      // A view that has read the lease's events but not yet the job's.
      const late = Log.of({
        ...log,
        lasts: (part) =>
          Stream.filter(log.lasts(part), ({ stream }) => !stream.startsWith(`${Job.name}.`)),
        follow: () => Stream.never,
      })
      yield* Effect.forkScoped(
        Effect.provideService(Effect.flatMap(dispatch(options), runProcess), Log, late),
      )
      yield* settled
      assert.deepEqual(agent.cancelled, [])
      assert.equal((yield* jobNow(jobId(1))).state, "transferring")
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
    }),
  )
})

describe("a job that waits", () => {
  conducted(
    "is recast after the deadline, and then at growing intervals",
    Effect.gen(function* () {
      yield* dispatching
      yield* pendingTarget(1)
      yield* backUp(1, 1)
      yield* pass("3 hours")
      assert.deepEqual(yield* secondsOf("job", "JobRecast"), [300, 900, 2100, 4500, 9300])
    }),
  )

  conducted(
    "ends after too many failed boots, if no worker is left or booting",
    Effect.gen(function* () {
      const failed = (seconds: number) => {
        const failure = { worker_id, at: instant(seconds), reason: "It did not come up." }
        return ask(address(Fleet, project_id, RecordBootFailure.make(failure)))
      }
      yield* dispatching
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* failed(-7000)
      assert.equal((yield* jobNow(jobId(1))).state, "queued")
      yield* failed(0)
      const { state, error } = yield* jobNow(jobId(1))
      assert.deepEqual([state, error?.code], ["error", "svc.worker_unavailable"])
      assert.isTrue(error?.wrote_nothing)
      yield* pass("1 hour")
      yield* backUp(2, 1)
      assert.equal((yield* jobNow(jobId(2))).state, "queued")
    }),
  )

  conducted(
    "waits for an existing worker despite failed boots",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(1)
      yield* ready(worker_id, 1)
      yield* backUp(1, 1)
      yield* backUp(2, 1)
      for (const seconds of [0, 1]) {
        const failure = { worker_id, at: instant(seconds), reason: "It did not come up." }
        yield* ask(address(Fleet, project_id, RecordBootFailure.make(failure)))
      }
      assert.equal((yield* jobNow(jobId(2))).state, "queued")
    }),
  )
})

describe("a job that is stuck", () => {
  conducted(
    "fails the maximum duration after its last step, and is held until its agent has stopped",
    Effect.gen(function* () {
      const agent = yield* working()
      agent.has_it = true
      yield* start(jobId(1), "provisioning_source")
      yield* pass("6 hours")
      const { state, error } = yield* jobNow(jobId(1))
      assert.deepEqual([state, error?.code], ["error", "svc.engine_error"])
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
      assert.deepEqual(agent.cancelled, [[jobId(1), 1]])
      assert.equal((yield* types("backup")).at(-1), "BackupFailed")
    }),
  )

  conducted(
    "does not fail while it progresses",
    Effect.gen(function* () {
      yield* working("provisioning_source")
      yield* TestClock.adjust("5 hours")
      const to = "connecting_repository"
      yield* go(jobId(1), to)
      yield* pass("5 hours")
      assert.equal((yield* jobNow(jobId(1))).state, to)
    }),
  )
})
