import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { address } from "#actors/commands.ts"
import { failLostJob, startJob, unassignJob } from "#actors/share-protection/jobs/transitions.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { job_steps } from "#schemas/share-protection/job.ts"
import {
  BackendUnavailable,
  Conflict,
  WorkerUnavailable,
} from "#schemas/share-protection/rejection.ts"
import { MarkWorkerDead } from "#schemas/share-protection/worker.ts"
import {
  agentOptions,
  assertNothingLeft,
  assign,
  enrolledWith,
  give,
  happened,
  hold,
  inWorld,
  settled,
  snapshotsOf,
  until,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  backupNow,
  enroll_job_id,
  factsOf,
  jobNow,
  leaseNow,
  send,
  workerNow,
} from "../../world/share-protection/deployment.ts"
import { other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import { jobId, target_id } from "../../world/share-protection/samples.ts"

const refusal = <A>(effect: Effect.Effect<A, WorkerUnavailable>) =>
  Effect.map(Effect.flip(effect), (failure) => {
    assert.instanceOf(failure, WorkerUnavailable)
    return failure.detail
  })

describe("an agent", () => {
  inWorld("registers its worker", () =>
    Effect.gen(function* () {
      yield* worker()
      const { registration } = agentOptions
      const known = { ...registration, engine_version: "0.0.0-memory" }
      assert.equal((yield* workerNow()).state, "ready")
      assert.deepInclude(yield* workerNow(), known)
    }),
  )

  inWorld("is rejected if its id belongs to a dead or retired worker", () =>
    Effect.gen(function* () {
      yield* Effect.scoped(worker())
      yield* send([address(Worker, worker_id, MarkWorkerDead.make({ reason: "silent" }))])
      // In the same millisecond as the previous registration, this would be the same command.
      yield* Effect.sleep("2 millis")
      assert.instanceOf(yield* Effect.flip(worker()), Conflict)
    }),
  )

  inWorld("waits for an unavailable log at startup", (world) =>
    Effect.gen(function* () {
      world.is_log_down = true
      const starting = yield* Effect.forkChild(worker())
      yield* until(Effect.sync(() => world.logged.some((line) => line.includes("is waiting"))))
      world.is_log_down = false
      yield* Fiber.join(starting)
      assert.equal((yield* workerNow()).state, "ready")
    }),
  )

  inWorld("accepts as many jobs as it has slots", () =>
    Effect.gen(function* () {
      const { offer } = yield* worker()
      const { order } = yield* assign(enroll_job_id)
      const others = [jobId(31), jobId(32), jobId(33)].map((job_id) => ({ ...order, job_id }))
      yield* Effect.forEach(others.slice(0, 2), offer)
      for (const other of others.slice(2)) {
        assert.equal(yield* refusal(offer(other)), "All 2 slots are busy.")
      }
    }),
  )

  inWorld("rejects an order for another worker", (world) =>
    Effect.gen(function* () {
      const { offer } = yield* worker()
      const { order } = yield* assign(enroll_job_id)
      const stray = { ...order, worker_id: other_worker_id }
      assert.equal(yield* refusal(offer(stray)), "The job command is for worker worker-2.")
      assert.deepEqual(world.calls, [])
    }),
  )

  inWorld("frees the slot of a job that ended", (world) =>
    Effect.gen(function* () {
      const { registration } = agentOptions
      const one_slot = { ...registration, capacity_slots: 1 }
      const { offer } = yield* worker({ registration: one_slot })
      const came = yield* hold(world, "trusts.redeem")
      const { order } = yield* assign(enroll_job_id)
      yield* offer(order)
      yield* came
      const other = { ...order, job_id: jobId(31) }
      assert.equal(yield* refusal(offer(other)), "All 1 slots are busy.")
      yield* (yield* Agents).cancel(worker_id, enroll_job_id, order.fence)
      yield* settled(enroll_job_id)
      yield* until(Effect.map(Effect.exit(offer(other)), Exit.isSuccess), "it takes another")
    }),
  )

  inWorld("ignores a repeated order, and rejects another order for a running job", (world) =>
    Effect.gen(function* () {
      const { offer } = yield* worker()
      const came = yield* hold(world, "trusts.redeem")
      const { order } = yield* assign(enroll_job_id)
      yield* offer(order)
      yield* came
      yield* offer(order)
      const later = { ...order, fence: order.fence + 1 }
      assert.match(yield* refusal(offer(later)), /not finished an earlier run/)
      yield* Effect.sleep(20)
      assert.lengthOf(
        world.calls.filter((call) => call === "trusts.redeem"),
        1,
      )
    }),
  )

  inWorld("starts nothing for an order repeated after its job ended", (world) =>
    Effect.gen(function* () {
      const { offer } = yield* worker()
      const { order } = yield* assign(enroll_job_id)
      yield* offer(order)
      yield* settled(enroll_job_id)
      const head = yield* (yield* Log).head("")
      world.calls.length = 0
      yield* offer(order)
      yield* Effect.sleep(30)
      assert.deepEqual(world.calls, [])
      assert.equal(yield* (yield* Log).head(""), head)
    }),
  )

  inWorld("starts nothing if its job was reassigned meanwhile", (world) =>
    Effect.gen(function* () {
      const { offer } = yield* worker()
      const { order, hold: held } = yield* assign(enroll_job_id)
      yield* send(unassignJob(yield* factsOf(enroll_job_id), held))
      yield* offer(order)
      yield* Effect.sleep(30)
      assert.deepEqual(world.calls, [])
      assert.equal((yield* jobNow(enroll_job_id)).state, "queued")
    }),
  )

  inWorld("leaves a job to an earlier run of an agent with the same id", (world) =>
    Effect.gen(function* () {
      const { offer } = yield* worker()
      const { order, hold: held } = yield* assign(enroll_job_id)
      yield* send(startJob(yield* factsOf(enroll_job_id), held))
      const head = yield* (yield* Log).head("")
      yield* offer(order)
      yield* Effect.sleep(30)
      assert.deepEqual(world.calls, [])
      assert.equal(yield* (yield* Log).head(""), head)
      assert.equal((yield* leaseNow).holds.length, 1)
    }),
  )

  inWorld("drains: rejects new orders and waits for running jobs", (world) =>
    Effect.gen(function* () {
      const { offer, drain } = yield* worker()
      const came = yield* hold(world, "trusts.redeem")
      const { order } = yield* assign(enroll_job_id)
      yield* offer(order)
      yield* came
      const drained = yield* Effect.forkChild(drain)
      yield* Effect.sleep(20)
      const other = { ...order, job_id: jobId(31) }
      assert.equal(yield* refusal(offer(other)), "The worker accepts no more jobs.")
      assert.isUndefined(drained.pollUnsafe())
      world.instead.clear()
      const { cancel } = yield* Agents
      yield* cancel(worker_id, order.job_id, order.fence)
      yield* Fiber.join(drained)
      assert.equal((yield* workerNow()).state, "ready")
    }),
  )
})

describe("an agent that stops", () => {
  inWorld("stops its jobs and reports them", (world) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.provide(worker(), scope)
      yield* enrolledWith()
      world.engine.next.set("backup", { hangs: true })
      yield* give(backup_job_id)
      yield* until(Effect.sync(() => world.engine.running === 1))
      yield* Scope.close(scope, Exit.void)
      const { state, error } = yield* jobNow(backup_job_id)
      assert.equal(state, "error")
      const category = "operator_action_required"
      const detail = "The worker was stopped."
      const result = { code: "svc.worker_unavailable", category, detail } as const
      assert.deepInclude(error, { ...result, wrote_nothing: false })
      assert.equal((yield* backupNow).state, "error")
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("reports that nothing was written if the engine did not start", (world) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.provide(worker(), scope)
      yield* enrolledWith()
      const came = yield* hold(world, "buckets.reach")
      yield* give(backup_job_id)
      yield* came
      yield* Scope.close(scope, Exit.void)
      assert.isTrue((yield* jobNow(backup_job_id)).error?.wrote_nothing)
    }),
  )

  inWorld("stops retrying and ends if the log is unavailable", (world) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.provide(worker(), scope)
      yield* enrolledWith()
      const came = yield* hold(world, "buckets.reach")
      yield* give(backup_job_id)
      yield* came
      world.is_log_down = true
      const before = Date.now()
      yield* Scope.close(scope, Exit.void)
      assert.isBelow(Date.now() - before, 10_000)
      assert.equal(world.engine.running, 0)
      yield* until(Effect.sync(() => world.logged.some((line) => /not be released/.test(line))))
    }),
  )

  inWorld("rejects further orders", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { offer } = yield* Scope.provide(worker(), scope)
      const { order } = yield* assign(enroll_job_id)
      yield* Scope.close(scope, Exit.void)
      yield* refusal(offer(order))
      yield* refusal((yield* Agents).offer(worker_id, order))
    }),
  )
})

describe("an agent whose worker was declared dead", () => {
  inWorld("stops all jobs, reports the reason, and frees nothing twice", (world) =>
    Effect.gen(function* () {
      const { dismissed, offer } = yield* worker()
      yield* enrolledWith()
      world.engine.next.set("backup", { hangs: true })
      const { order, hold: held } = yield* assign(backup_job_id)
      yield* offer(order)
      yield* until(Effect.sync(() => world.engine.running === 1))
      const job = yield* factsOf(backup_job_id)
      const reason = "Nothing was heard of it."
      const category = "operator_action_required"
      const failure = { code: "svc.worker_unavailable", category, detail: reason } as const
      yield* send(failLostJob(job, held, { ...failure, wrote_nothing: false }))
      yield* send([address(Worker, worker_id, MarkWorkerDead.make({ reason }))])
      const lease = yield* happened("lease", target_id)
      assert.instanceOf(yield* dismissed, Conflict)
      yield* until(Effect.sync(() => world.engine.running === 0))
      // The agent already accepted the order of the run that it is ending.
      yield* until(Effect.map(Effect.exit(offer(order)), Exit.isFailure), "the run ends")
      assert.equal(yield* refusal(offer(order)), "The worker accepts no more jobs.")
      assert.deepEqual(yield* happened("lease", target_id), lease)
      assert.equal((yield* jobNow(backup_job_id)).error?.detail, reason)
    }),
  )
})

describe("an agent without responses", () => {
  inWorld("stops all jobs after three heartbeats, and is dismissed", (world) =>
    Effect.gen(function* () {
      const { dismissed, offer } = yield* worker()
      yield* enrolledWith()
      world.engine.next.set("backup", { hangs: true })
      const { order } = yield* assign(backup_job_id)
      yield* offer(order)
      yield* until(Effect.sync(() => world.engine.running === 1))
      const before = Date.now()
      world.is_log_away = true
      assert.instanceOf(yield* dismissed, WorkerUnavailable)
      assert.isAtLeast(Date.now() - before, 2 * 500)
      yield* until(Effect.sync(() => world.engine.running === 0))
      world.is_log_away = false
      yield* settled(backup_job_id)
      assert.equal((yield* jobNow(backup_job_id)).error?.detail, "The worker was stopped.")
      assert.equal(yield* refusal(offer(order)), "The worker accepts no more jobs.")
    }),
  )

  inWorld("continues if a response arrives in time", (world) =>
    Effect.gen(function* () {
      const { dismissed } = yield* worker()
      yield* enrolledWith()
      const came = yield* hold(world, "buckets.usage")
      yield* give(backup_job_id)
      yield* came
      for (let i = 0; i < 3; i++) {
        world.is_log_away = true
        yield* Effect.sleep(600)
        world.is_log_away = false
        yield* Effect.sleep(600)
      }
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(dismissed, 1)))
      assert.equal((yield* jobNow(backup_job_id)).state, "finalizing")
    }),
  )
})

describe("an unavailable log", () => {
  inWorld("returns a job whose worker was stopped before the log recorded its start", (world) =>
    Effect.gen(function* () {
      const { dismissed } = yield* worker()
      yield* enrolledWith()
      const { order } = yield* assign(backup_job_id)
      world.is_log_away = true
      yield* (yield* Agents).offer(worker_id, order)
      assert.instanceOf(yield* dismissed, WorkerUnavailable)
      world.is_log_away = false
      yield* until(Effect.map(jobNow(backup_job_id), (job) => job.worker_id === null))
      const { state, started } = yield* jobNow(backup_job_id)
      assert.deepEqual([state, started], ["queued", false])
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("delays the start of a job, and loses nothing", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      const { order } = yield* assign(backup_job_id)
      world.calls.length = 0
      world.is_log_down = true
      yield* (yield* Agents).offer(worker_id, order)
      yield* Effect.sleep(600)
      assert.deepEqual(world.calls, [])
      world.is_log_down = false
      assert.equal((yield* settled(backup_job_id)).state, "available")
    }),
  )

  inWorld("delays the end of a job, and loses nothing", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      const go = yield* Deferred.make<void>()
      const away = new BackendUnavailable({ detail: "It is not measured." })
      const waiting = Effect.andThen(Deferred.await(go), Effect.fail(away))
      world.instead.set("buckets.usage", waiting)
      yield* give(backup_job_id)
      yield* until(Effect.sync(() => world.calls.at(-1) === "buckets.usage"))
      world.is_log_down = true
      yield* Deferred.succeed(go, undefined)
      yield* Effect.sleep(600)
      assert.lengthOf((yield* leaseNow).holds, 1)
      assert.notInclude(world.calls, "shares.release")
      world.is_log_down = false
      assert.equal((yield* settled(backup_job_id)).state, "available")
      assert.lengthOf(yield* snapshotsOf(world), 1)
    }),
  )

  inWorld("lets a job continue after short outages", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      const { order } = yield* assign(backup_job_id)
      const flicker = Effect.gen(function* () {
        world.is_log_down = !world.is_log_down
        yield* Effect.sleep(70)
      })
      const flickering = yield* Effect.forkChild(Effect.forever(flicker))
      yield* (yield* Agents).offer(worker_id, order)
      assert.equal((yield* settled(backup_job_id)).state, "available")
      yield* Fiber.interrupt(flickering)
      const steps = (yield* happened("job", backup_job_id)).slice(-6)
      assert.deepEqual(steps, [...job_steps.slice(1), "JobCompleted"])
      assert.lengthOf(yield* snapshotsOf(world), 1)
    }),
  )
})
