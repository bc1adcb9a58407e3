import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { type Addressed, address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  abandonJob,
  assignJob,
  completeJob,
  failJob,
  type Hold,
  type JobFacts,
  settleJob,
  startJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Lease } from "#actors/share-protection/lease.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import {
  refusalOf,
  serveWorkers,
  workerCommands,
} from "#adapters/share-protection/worker-commands.ts"
import { inboxOf } from "#adapters/share-protection/worker-users.ts"
import { connectPlain, NatsConnection, NatsServer } from "#bus"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { JobType } from "#schemas/share-protection/job.ts"
import { ReleaseLease } from "#schemas/share-protection/lease.ts"
import { RecordTargetUsage } from "#schemas/share-protection/target.ts"
import { DrainWorker, MarkWorkerDead, RegisterWorker } from "#schemas/share-protection/worker.ts"
import { describeNats } from "../../../world/programs/nats.ts"
import {
  backup_job_id,
  factsOf,
  jobNow,
  leaseNow,
  requestedBackup,
  results,
  send,
  workerNow,
} from "../../../world/share-protection/deployment.ts"
import { failure, other_worker_id, worker_id } from "../../../world/share-protection/job-samples.ts"
import {
  at,
  backup_id,
  domain_id,
  jobId,
  project_id,
  share_id,
  target_id,
  uuid,
} from "../../../world/share-protection/samples.ts"

const hold: Hold = { worker_id, fence: 2 }
const origin = (actor = `worker:${worker_id}`) => ({ command_id: randomUUID(), actor, at })

const registration = RegisterWorker.make({
  project_id,
  domain_id,
  hostname: "host-1",
  image_version: "image-1",
  engine_version: "0.18.0",
  capacity_slots: 2,
})

const everything = {
  job_id: jobId(1),
  resource_id: uuid(6),
  target_id,
  project_id,
  share_id,
  backup_id,
  hold,
}

describe("what a worker sends", () => {
  it("is everything that a run reports, of every type of job", () => {
    for (const job_type of JobType.literals) {
      const job: JobFacts = { ...everything, job_type }
      const batches = [
        startJob(job, hold),
        completeJob(job, hold, results[job_type]),
        failJob(job, hold, failure),
        settleJob(job, hold),
      ]
      for (const batch of batches) assert.isUndefined(refusalOf(worker_id, origin(), batch))
    }
  })

  const job: JobFacts = { ...everything, job_type: "backup" }
  const usage_stats = { stored_bytes: 1, noncurrent_bytes: 0, objects: 1, measured_at: at }
  const refused: Readonly<Record<string, readonly [string, ReadonlyArray<Addressed<unknown>>]>> = {
    "in somebody else's name": [
      `worker:${other_worker_id}`,
      [address(Worker, worker_id, registration)],
    ],
    "in a tenant's name": ["alice", startJob(job, hold)],
    "about another worker": [
      `worker:${worker_id}`,
      [address(Worker, other_worker_id, registration)],
    ],
    "by another worker's hold": [
      `worker:${worker_id}`,
      startJob(job, { ...hold, worker_id: other_worker_id }),
    ],
    "that it is to drain": [
      `worker:${worker_id}`,
      [address(Worker, worker_id, DrainWorker.make({}))],
    ],
    "that it is dead": [
      `worker:${worker_id}`,
      [address(Worker, worker_id, MarkWorkerDead.make({ reason: "" }))],
    ],
    "that a job is its own": [`worker:${worker_id}`, assignJob(job, hold)],
    "that a job ends while its engine runs, and its hold is broken": [
      `worker:${worker_id}`,
      [...abandonJob(job, hold, failure), ...assignJob(job, hold)],
    ],
    "more at once than a step has": [
      `worker:${worker_id}`,
      Array.from({ length: 17 }, () =>
        address(Target, target_id, RecordTargetUsage.make({ usage_stats })),
      ),
    ],
  }
  for (const [what, [actor, batch]] of Object.entries(refused)) {
    it(`is nothing ${what}`, () => {
      assert.isDefined(refusalOf(worker_id, origin(actor), batch))
    })
  }
})

const lines: Array<string> = []
const heard = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])

/** A server with its own log, a backup that worker-1 holds, and a sender of worker commands. */
const served = (
  name: string,
  body: (
    as: (id: typeof worker_id) => Commands["Service"]["send"],
    job: JobFacts,
  ) => Effect.Effect<void, unknown, Commands | Log>,
) => ({ name, body })

const scenes = [
  served("carries out what belongs to the job that the worker holds", (as, job) =>
    Effect.gen(function* () {
      const send = as(worker_id)
      yield* send(origin(), ...startJob(job, hold))
      assert.equal((yield* jobNow(backup_job_id)).state, "provisioning_network")
      const usage_stats = { stored_bytes: 1, noncurrent_bytes: 0, objects: 1, measured_at: at }
      yield* send(origin(), address(Target, target_id, RecordTargetUsage.make({ usage_stats })))
      yield* send(origin(), ...failJob(job, hold, failure))
      assert.deepEqual((yield* leaseNow).holds, [])
      // Sent again, as after a lost response.
      yield* send(origin(), ...settleJob(job, hold))
    }),
  ),
  served("refuses what is about other things, and changes nothing", (as, job) =>
    Effect.gen(function* () {
      const log = yield* Log
      const before = yield* log.head("")
      const send = as(other_worker_id)
      const its = origin(`worker:${other_worker_id}`)
      const usage_stats = { stored_bytes: 1, noncurrent_bytes: 0, objects: 1, measured_at: at }
      const theirs: ReadonlyArray<Batch> = [
        [address(Target, target_id, RecordTargetUsage.make({ usage_stats }))],
        [address(Lease, target_id, ReleaseLease.make({ job_id: backup_job_id, fence: 2 }))],
        failJob(
          { ...job, resource_id: uuid(77) },
          { ...hold, worker_id: other_worker_id },
          failure,
        ),
        startJob(job, hold),
        [address(Job, backup_job_id, { type: "CancelJob" })],
      ]
      for (const batch of theirs) {
        const refusal = yield* Effect.flip(send(its, ...batch))
        assert("code" in refusal)
        assert.equal(refusal.code, "svc.forbidden", JSON.stringify(batch))
      }
      assert.equal(yield* log.head(""), before)
      assert.isTrue(
        lines.some((line) => line.includes(`command of worker ${other_worker_id} was rejected`)),
      )
    }),
  ),
  served("answers a worker by the rejections of what it asked", (as, job) =>
    Effect.gen(function* () {
      const not_held = { worker_id: other_worker_id, fence: 9 }
      const its = origin(`worker:${other_worker_id}`)
      const refusal = yield* Effect.flip(as(other_worker_id)(its, ...startJob(job, not_held)))
      assert("code" in refusal)
      assert.notEqual(refusal.code, "svc.forbidden")
      assert.deepEqual((yield* workerNow(other_worker_id)).running_jobs, [])
    }),
  ),
]

describeNats("the commands of workers", (it) => {
  for (const { name, body } of scenes) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const { connection } = yield* NatsConnection
        yield* serveWorkers(connection)
        yield* requestedBackup
        const job = yield* factsOf(backup_job_id)
        yield* send(assignJob(job, hold))
        const { servers, core: login } = yield* NatsServer
        const ends = new Map(
          yield* Effect.forEach([worker_id, other_worker_id], (id) =>
            Effect.gen(function* () {
              const its = yield* connectPlain({ servers, login, inbox: inboxOf(id) })
              const commands = Layer.fresh(workerCommands(its, id))
              const { send } = yield* Effect.provide(Commands, commands)
              return [id, send] as const
            }),
          ),
        )
        const as = (id: typeof worker_id) => ends.get(id) ?? assert.fail(id)
        yield* body(as, job)
      }).pipe(
        Effect.scoped,
        Effect.provide(Layer.merge(heard, Layer.provideMerge(host, logMemory)), { local: true }),
      ),
    )
  }
})
