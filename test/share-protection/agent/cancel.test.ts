import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { cancelJob, failLostJob, retryJob } from "#actors/share-protection/jobs/transitions.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import {
  queueTargetJob,
  requestRestore,
  testBackup,
  undeleteBackup,
} from "#actors/share-protection/requests.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { ExpireBackup } from "#schemas/share-protection/backup.ts"
import type { JobId } from "#schemas/share-protection/id.ts"
import { MarkWorkerDead } from "#schemas/share-protection/worker.ts"
import {
  assertNothingLeft,
  assign,
  enrolledWith,
  give,
  hold,
  inWorld,
  ran,
  settled,
  snapshotsOf,
  until,
  type World,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  backupNow,
  enroll_job_id,
  factsOf,
  jobNow,
  leaseNow,
  policyNow,
  restore_job_id,
  send,
  targetNow,
  workerNow,
} from "../../world/share-protection/deployment.ts"
import { other_worker_id, worker_id } from "../../world/share-protection/job-samples.ts"
import {
  backup_id,
  jobId,
  project_id,
  restore,
  restore_id,
  share_id,
  target_id,
} from "../../world/share-protection/samples.ts"

const place = { backup_id, project_id, share_id, target_id }

/** Requests a job of each type, on an enrolled target except for the enrollment itself. */
const scenes = {
  target_enroll: { job_id: enroll_job_id, ask: Effect.void },
  backup: { job_id: backup_job_id, ask: enrolledWith() },
  restore: {
    job_id: restore_job_id,
    ask: Effect.gen(function* () {
      yield* enrolledWith()
      yield* ran(backup_job_id)
      yield* send(requestRestore(restore_id, { ...restore, job_id: restore_job_id }))
    }),
  },
  maintenance: {
    job_id: jobId(9),
    ask: Effect.gen(function* () {
      yield* enrolledWith()
      yield* send([queueTargetJob(jobId(9), "maintenance", target_id, project_id)])
    }),
  },
  undelete: {
    job_id: jobId(9),
    ask: Effect.gen(function* () {
      yield* enrolledWith()
      yield* ran(backup_job_id)
      yield* send([address(Backup, backup_id, ExpireBackup.make({}))])
      yield* send(undeleteBackup(jobId(9), place, 10))
    }),
  },
  restore_test: {
    job_id: jobId(9),
    ask: Effect.gen(function* () {
      yield* enrolledWith()
      yield* ran(backup_job_id)
      yield* send(testBackup(jobId(9), place))
    }),
  },
} as const

/** The external calls of each job type, in order, at which a test can interrupt it. */
const calls = {
  target_enroll: [
    ...(["trusts.redeem", "vault.read", "buckets.preflight", "vault.find", "vault.store"] as const),
    ...(["engine.init", "buckets.usage"] as const),
  ],
  backup: [
    ...(["shares.find", "shares.prepare", "trusts.redeem", "vault.read", "buckets.reach"] as const),
    ...(["engine.backup", "buckets.protectedUntil", "buckets.usage", "shares.release"] as const),
  ],
  restore: [
    ...(["shares.find", "trusts.redeem", "vault.read", "buckets.reach", "shares.create"] as const),
    ...(["engine.restore", "shares.finish"] as const),
  ],
  maintenance: [
    ...([
      "trusts.redeem",
      "vault.read",
      "buckets.reach",
      ...(["engine.maintain", "buckets.retention", "buckets.purge", "buckets.usage"] as const),
    ] as const),
  ],
  undelete: [
    ...(["trusts.redeem", "vault.read", "buckets.reach", "buckets.undelete"] as const),
    ...(["engine.snapshots", "buckets.protectedUntil", "buckets.usage"] as const),
  ],
  restore_test: [
    ...(["trusts.redeem", "vault.read", "buckets.reach", "engine.prove", "buckets.usage"] as const),
  ],
} as const

const types = [
  ...(["target_enroll", "backup", "restore", "maintenance", "undelete", "restore_test"] as const),
]

/** Cancels the job as a tenant does, and then stops it as the conductor does. */
const cancel = Effect.fnUntraced(function* (job_id: JobId) {
  const { hold: held, ...job } = yield* factsOf(job_id)
  yield* send(cancelJob({ ...job, hold: held }))
  assert(held !== null)
  return yield* (yield* Agents).cancel(held.worker_id, job_id, held.fence)
})

const head = Effect.flatMap(Log, (log) => log.head(""))

describe("a cancelled job", () => {
  for (const type of types) {
    // Cleanup always completes: cancellation does not interrupt the release of the share.
    for (const call of calls[type].filter((call) => call !== "shares.release")) {
      inWorld(`of type ${type} stops at ${call}, and leaves nothing behind`, (world) =>
        Effect.gen(function* () {
          yield* worker()
          const { job_id, ask } = scenes[type]
          yield* ask
          const before = type === "target_enroll" ? [] : yield* snapshotsOf(world)
          const came = yield* hold(world, call)
          yield* give(job_id)
          yield* came
          assert.isTrue(yield* cancel(job_id))
          const { state, error, cancelled } = yield* settled(job_id)
          assert.deepEqual([state, error?.detail, cancelled], ["error", "cancelled", true])
          yield* assertNothingLeft(world)
          assert.notMatch(world.logged.join("\n"), /refused/)
          const at = yield* head
          world.instead.clear()
          yield* Effect.sleep(30)
          assert.equal(yield* head, at, "nothing is said after that")
          if (type === "target_enroll") {
            assert.equal((yield* targetNow).status, "error")
          } else assert.deepEqual(yield* snapshotsOf(world), before)
          if (type === "backup") assert.equal((yield* backupNow).state, "error")
        }),
      )
    }
  }

  inWorld("stops its engine before its slot and its lease are freed", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      world.engine.next.set("backup", { hangs: true })
      yield* give(backup_job_id)
      yield* until(Effect.sync(() => world.engine.running === 1))
      world.reports.length = 0
      yield* cancel(backup_job_id)
      yield* settled(backup_job_id)
      assert.deepEqual(
        world.reports.filter(({ type }) => /Cancelled|Released$/.test(type)),
        [
          { type: "JobCancelled", engines: 1 },
          { type: "WorkerJobReleased", engines: 0 },
          { type: "LeaseReleased", engines: 0 },
        ],
      )
      assert.deepEqual(yield* snapshotsOf(world), [])
    }),
  )

  inWorld("can be stopped twice with the same response, but only by its own fence", (world) =>
    Effect.gen(function* () {
      const { cancel: stop } = yield* worker()
      yield* enrolledWith()
      const came = yield* hold(world, "trusts.redeem")
      const { fence } = yield* give(backup_job_id)
      yield* came
      assert.isFalse(yield* stop(backup_job_id, fence + 1))
      assert.isFalse(yield* stop(jobId(77), fence))
      assert.equal((yield* jobNow(backup_job_id)).state, "connecting_repository")
      yield* cancel(backup_job_id)
      yield* stop(backup_job_id, fence)
      yield* settled(backup_job_id)
      assert.isFalse(yield* stop(backup_job_id, fence))
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("starts nothing if it was cancelled before its order arrived", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      const { order } = yield* assign(backup_job_id)
      yield* send(cancelJob(yield* factsOf(backup_job_id)))
      world.calls.length = 0
      yield* (yield* Agents).offer(worker_id, order)
      yield* settled(backup_job_id)
      assert.deepEqual(world.calls, [])
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("does not complete if it was cancelled just before its report", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      const go = yield* Deferred.make<void>()
      world.instead.set("shares.release", Deferred.await(go))
      yield* give(backup_job_id)
      yield* until(Effect.sync(() => world.calls.at(-1) === "shares.release"))
      yield* send(cancelJob(yield* factsOf(backup_job_id)))
      assert.lengthOf((yield* leaseNow).holds, 1)
      yield* Deferred.succeed(go, undefined)
      const { state, error } = yield* settled(backup_job_id)
      assert.deepEqual([state, error?.detail], ["error", "cancelled"])
      assert.deepEqual((yield* leaseNow).holds, [])
      assert.deepEqual(yield* snapshotsOf(world), [])
    }),
  )
})

/** Isolates the worker: none of its messages arrive from then on. */
const die = Effect.fnUntraced(function* (job_id: JobId) {
  const job = yield* factsOf(job_id)
  assert(job.hold !== null)
  const reason = "Nothing was heard of it."
  yield* send([address(Worker, job.hold.worker_id, MarkWorkerDead.make({ reason }))])
  const code = "svc.worker_unavailable"
  const category = "operator_action_required"
  yield* send(failLostJob(job, job.hold, { code, category, detail: reason, wrote_nothing: false }))
})

describe("a worker that was declared dead during a backup", () => {
  inWorld("leaves the repository unchanged, as another worker may own it", (world) =>
    Effect.gen(function* () {
      yield* worker({ heartbeat_interval_seconds: 1000 })
      yield* enrolledWith()
      const go = yield* Deferred.make<void>()
      world.instead.set("buckets.usage", Deferred.await(go))
      world.calls.length = 0
      yield* give(backup_job_id)
      yield* until(Effect.sync(() => world.calls.at(-1) === "buckets.usage"))
      yield* die(backup_job_id)
      yield* Deferred.succeed(go, undefined)
      yield* until(Effect.sync(() => world.calls.at(-1) === "shares.release"))
      assert.notInclude(world.calls, "engine.forget")
      assert.lengthOf(yield* snapshotsOf(world), 1)
    }),
  )
})

describe("a worker that learns that it was declared dead", () => {
  inWorld("stops its backup, and leaves the repository unchanged", (world) =>
    Effect.gen(function* () {
      const { dismissed } = yield* worker()
      yield* enrolledWith()
      world.instead.set("buckets.usage", Effect.never)
      world.calls.length = 0
      yield* give(backup_job_id)
      yield* until(Effect.sync(() => world.calls.at(-1) === "buckets.usage"))
      yield* die(backup_job_id)
      yield* dismissed
      yield* until(Effect.sync(() => world.calls.at(-1) === "shares.release"))
      assert.notInclude(world.calls, "engine.forget")
      assert.lengthOf(yield* snapshotsOf(world), 1)
    }),
  )
})

/** The expected end of each job, regardless of where its first worker died. */
const assertDone = Effect.fnUntraced(function* (world: World, type: (typeof types)[number]) {
  if (type === "target_enroll") {
    assert.equal((yield* targetNow).status, "available")
    const passwords = [...world.tenants.secrets.values()].filter(({ name }) =>
      /^almanac/.test(name),
    )
    assert.lengthOf(passwords, 1, "one password, however often it was tried")
  }
  if (type !== "backup") return
  const { state, engine_snapshot_id } = yield* backupNow
  assert.equal(state, "available")
  const ids = (yield* snapshotsOf(world)).map((snapshot) => snapshot.engine_snapshot_id)
  assert.include(ids, engine_snapshot_id)
  assert.isNull((yield* policyNow).backup)
})

describe("a job whose worker died", () => {
  for (const type of types) {
    for (const call of calls[type]) {
      inWorld(`of type ${type} at ${call} is completed by another worker`, (world) =>
        Effect.gen(function* () {
          const first = yield* worker({ heartbeat_interval_seconds: 1000 })
          yield* worker({ worker_id: other_worker_id })
          const { job_id, ask } = scenes[type]
          yield* ask
          const came = yield* hold(world, call)
          const { fence } = yield* give(job_id)
          yield* came
          yield* die(job_id)
          world.instead.clear()
          yield* send(retryJob(yield* factsOf(job_id), { automatic: false, policy_id: null }))
          yield* give(job_id, other_worker_id)
          assert.equal((yield* settled(job_id, other_worker_id)).state, "available")
          yield* assertDone(world, type)
          // Messages from the dead worker are rejected if they still arrive.
          const at = yield* head
          yield* first.cancel(job_id, fence)
          yield* Effect.sleep(20)
          assert.equal(yield* head, at)
          assert.deepEqual((yield* leaseNow).holds, [])
          assert.deepEqual((yield* workerNow(other_worker_id)).running_jobs, [])
        }),
      )
    }
  }
})

describe("the calls of a job", () => {
  for (const type of types) {
    inWorld(`of type ${type} are exactly those tested here`, (world) =>
      Effect.gen(function* () {
        yield* worker()
        const { job_id, ask } = scenes[type]
        yield* ask
        world.calls.length = 0
        yield* ran(job_id)
        const made: ReadonlyArray<string> = [...new Set(world.calls)]
        assert.sameMembers([...made], [...calls[type]])
      }),
    )
  }
})
