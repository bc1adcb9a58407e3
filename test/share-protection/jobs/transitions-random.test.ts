/**
 * Random walks of four jobs of one repository on three workers: commands of conductors and agents
 * arrive in any order, late, twice and based on stale views. Failing properties print their seed.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import fc from "fast-check"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import {
  abandonJob,
  assignJob,
  breakHold,
  cancelJob,
  completeJob,
  failJob,
  failLostJob,
  type Hold,
  type JobFacts,
  rejectJob,
  retryJob,
  settleJob,
  startJob,
  unassignJob,
} from "#actors/share-protection/jobs/transitions.ts"
import {
  type Batch,
  queueTargetJob,
  requestBackup,
  requestRestore,
} from "#actors/share-protection/requests.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { AdoptBackup } from "#schemas/share-protection/backup.ts"
import { BackupId, ShareId, WorkerId } from "#schemas/share-protection/id.ts"
import { type JobState, type JobStep, job_steps } from "#schemas/share-protection/job.ts"
import { DrainWorker, MarkWorkerDead, UndrainWorker } from "#schemas/share-protection/worker.ts"
import {
  deployment,
  enrolledTarget,
  factsOf,
  jobNow,
  leaseNow,
  registerWorkers,
  results,
  send,
  toStep,
  workerNow,
} from "../../world/share-protection/deployment.ts"
import { failure, other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import {
  adopted,
  at,
  backup,
  jobId,
  project_id,
  restore,
  restore_id,
  target_id,
  uuid,
} from "../../world/share-protection/samples.ts"

const runs = 20
const steps = 200

const workers = [worker_id, other_worker_id, WorkerId.make("worker-3")] as const
const [backup_1, backup_2, restore_1, maintenance] = [jobId(11), jobId(12), jobId(13), jobId(14)]
const job_ids = [backup_1, backup_2, restore_1, maintenance]

/** Two backups of two shares, a restore of a third backup, and maintenance, all queued. */
const jobs = Effect.gen(function* () {
  yield* enrolledTarget
  yield* registerWorkers(workers[2])
  for (const [i, job_id] of [backup_1, backup_2].entries()) {
    const ids = { backup_id: BackupId.make(uuid(21 + i)), share_id: ShareId.make(uuid(31 + i)) }
    const request = { ...backup, ...ids, policy_id: null, job_id, tick: null, max_retries: 1 }
    yield* send(requestBackup(request, 10))
  }
  const there = { ...adopted, policy_id: null, taken_at: at }
  yield* send([address(Backup, restore.backup_id, AdoptBackup.make(there))])
  yield* send(requestRestore(restore_id, { ...restore, job_id: restore_1 }))
  yield* send([queueTargetJob(maintenance, "maintenance", target_id, project_id)])
  return yield* Effect.forEach(job_ids, factsOf)
})

/** Whether the batch was applied; rejections are allowed. */
const happens = (batch: Batch) =>
  send(batch).pipe(
    Effect.as(true),
    Effect.catch(() => Effect.succeed(false)),
  )

interface Given {
  readonly job: JobFacts
  readonly hold: Hold
}

/** State outside the log: the running engines and all holds that ever existed. */
interface World {
  readonly jobs: ReadonlyArray<JobFacts>
  readonly given: Array<Given>
  readonly engines: Set<Given>
  readonly dead: Set<WorkerId>
}

/** The actions and their weights. */
const actions = {
  assign: 8,
  start: 8,
  advance: 40,
  complete: 8,
  fail: 2,
  unassign: 2,
  settle: 6,
  cancel: 1,
  abandon: 1,
  reject: 1,
  retry: 4,
  retry_by_itself: 3,
  drain: 1,
  undrain: 3,
  kill: 1,
  bury: 3,
  break: 3,
} as const

interface Step {
  readonly action: keyof typeof actions
  readonly job: number
  readonly worker: number
  /** Index into all holds that ever existed; usually one of the latest. */
  readonly hold: number
  /** Whether the fence comes from a stale view. */
  readonly is_behind: boolean
}

const step: fc.Arbitrary<Step> = fc.record({
  action: fc.oneof(
    ...Struct.keys(actions).map((action) => ({
      arbitrary: fc.constant(action),
      weight: actions[action],
    })),
  ),
  job: fc.nat(job_ids.length - 1),
  // Usually the last worker, so that a job often returns to the same worker.
  worker: fc.oneof({ weight: 2, arbitrary: fc.constant(2) }, fc.nat(workers.length - 1)),
  hold: fc.oneof({ weight: 9, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(30) }),
  is_behind: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
})

const resultOf = ({ job_type }: JobFacts) => results[job_type]

/** Commands of the conductor, and events of workers. */
const conduct = Effect.fnUntraced(function* (world: World, { action, is_behind, ...step }: Step) {
  const job = world.jobs[step.job]
  const worker = workers[step.worker]
  if (job === undefined || worker === undefined) return
  if (action === "assign") {
    const { fence } = yield* leaseNow
    const hold = { worker_id: worker, fence: is_behind ? fence : fence + 1 }
    if (yield* happens(assignJob(job, hold))) world.given.push({ job, hold })
  }
  if (action === "cancel") yield* happens(cancelJob(job))
  if (action === "reject") yield* happens(rejectJob(job, failure))
  if (action === "retry" || action === "retry_by_itself") {
    const automatic = action === "retry_by_itself"
    yield* happens(retryJob(job, { automatic, policy_id: null }))
  }
  if (action === "drain") yield* happens([address(Worker, worker, DrainWorker.make({}))])
  if (action === "undrain") yield* happens([address(Worker, worker, UndrainWorker.make({}))])
  // One worker never dies, so that the test always makes progress.
  if (action === "kill" && is_behind && worker !== workers[2]) {
    yield* happens([address(Worker, worker, MarkWorkerDead.make({ reason: "It died." }))])
    world.dead.add(worker)
    for (const given of world.engines) {
      if (given.hold.worker_id === worker) world.engines.delete(given)
    }
  }
})

/** Whether the job has not ended and still has this hold. */
const isOpen = ({ job, hold }: Given) =>
  Effect.map(
    jobNow(job.job_id),
    ({ state, worker_id, fence }) =>
      state !== "available" &&
      state !== "error" &&
      worker_id === hold.worker_id &&
      fence === hold.fence,
  )

const following = new Map<JobState, JobStep>(
  job_steps.slice(1).map((to, i) => [job_steps[i] ?? "queued", to]),
)

/** Commands of an agent for one of its holds, and commands of the conductor. */
const report = Effect.fnUntraced(function* (world: World, { action, hold: back }: Step) {
  const given = world.given.at(-1 - back)
  if (given === undefined) return
  const { job, hold } = given
  const runs = world.engines.has(given)
  if (action === "unassign") yield* happens(unassignJob(job, hold))
  if (action === "abandon") yield* happens(abandonJob(job, hold, failure))
  if (world.dead.has(hold.worker_id)) {
    if (action === "bury") yield* happens(failLostJob(job, hold, failure))
    if (action === "break" && !(yield* isOpen(given))) yield* happens(breakHold(job, hold, "dead"))
    return
  }
  // An order arrives late, or twice.
  if (action === "start" && !runs && (yield* happens(startJob(job, hold)))) world.engines.add(given)
  if (action === "advance" && runs) {
    const { state } = yield* jobNow(job.job_id)
    const to = following.get(state)
    if (to !== undefined) yield* happens(toStep(job.job_id, hold, to))
  }
  if (action === "complete" && runs && (yield* happens(completeJob(job, hold, resultOf(job))))) {
    world.engines.delete(given)
  }
  if (action === "fail" && runs && (yield* happens(failJob(job, hold, failure)))) {
    world.engines.delete(given)
  }
  // The agent stops its engine when the hold is no longer the job's; a hold that it does not run is
  // settled.
  if (action === "settle" && !(yield* isOpen(given))) {
    world.engines.delete(given)
    yield* happens(settleJob(job, hold))
  }
})

const text = (job_id: string, { worker_id, fence }: Hold) => `${job_id} ${worker_id} ${fence}`

/** The invariants. */
const assertSound = Effect.fnUntraced(function* ({ jobs, given, engines }: World) {
  const { holds } = yield* leaseNow
  const held = new Set(holds.map((hold) => text(hold.job_id, hold)))
  const slots = yield* Effect.forEach(workers, (worker_id) =>
    Effect.map(workerNow(worker_id), ({ running_jobs }) => {
      assert.isAtMost(running_jobs.length, 2, "a worker has two slots")
      return running_jobs.map(({ job_id, fence }) => text(job_id, { worker_id, fence }))
    }),
  )
  assert.deepEqual(slots.flat().toSorted(), [...held].toSorted(), "a slot for each hold")

  const count = (mode: string) => holds.filter((hold) => hold.mode === mode).length
  assert.isAtMost(count("write"), 1, "one writer")
  if (count("exclusive") > 0) assert.lengthOf(holds, 1, "alone")
  assert.equal(new Set(holds.map(({ job_id }) => job_id)).size, holds.length, "a job once")

  for (const { job, hold } of engines) {
    assert.isTrue(held.has(text(job.job_id, hold)), "an engine that runs has its hold")
  }
  for (const { job_id } of jobs) {
    const { state, worker_id, fence } = yield* jobNow(job_id)
    if (state === "available" || state === "error" || worker_id === null) continue
    assert.isTrue(held.has(text(job_id, { worker_id, fence: fence ?? 0 })), "a job has its hold")
  }
  const fences = given.map(({ hold }) => hold.fence)
  assert.deepEqual(
    fences,
    [...new Set(fences)].toSorted((a, b) => a - b),
    "fences rise",
  )
})

/** Ends all jobs. */
const settleAll = Effect.fnUntraced(function* (world: World) {
  for (let i = world.given.length - 1; i >= 0; i--) {
    for (const action of ["unassign", "bury", "fail", "settle", "break"] as const) {
      yield* report(world, { action, job: 0, worker: 0, hold: i, is_behind: false })
    }
  }
})

describe("jobs of one repository, with any commands in any order", () => {
  it(`stay consistent in ${runs} random walks, and leave nothing behind`, async () => {
    let begun = 0
    const walk = Effect.fnUntraced(function* (script: ReadonlyArray<Step>) {
      const world: World = {
        jobs: yield* jobs,
        given: [],
        engines: new Set(),
        dead: new Set(),
      }
      for (const step of script) {
        yield* conduct(world, step)
        yield* report(world, step)
        yield* assertSound(world)
      }
      begun += world.given.length
      yield* settleAll(world)
      yield* assertSound(world)
      assert.deepEqual((yield* leaseNow).holds, [])
    })
    const script = fc.array(step, { minLength: steps, maxLength: steps })
    await fc.assert(
      fc.asyncProperty(script, (script) =>
        Effect.runPromise(walk(script).pipe(Effect.provide(deployment))),
      ),
      { numRuns: runs, endOnFailure: true },
    )
    assert.isAbove(begun, runs, "the walks give jobs to workers")
  })
})
