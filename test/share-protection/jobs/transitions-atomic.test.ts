/** Each batch of a job's transitions is atomic. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  abandonJob,
  admitJob,
  assignJob,
  cancelJob,
  completeJob,
  failJob,
  failLostJob,
  type Hold,
  type JobFacts,
  rejectJob,
  retryJob,
  startJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Lease } from "#actors/share-protection/lease.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { FailBackup, RetryBackup } from "#schemas/share-protection/backup.ts"
import { CancelJob, job_steps } from "#schemas/share-protection/job.ts"
import { AcquireLease, CloseLease } from "#schemas/share-protection/lease.ts"
import { AssignWorkerJob, DrainWorker } from "#schemas/share-protection/worker.ts"
import {
  advance,
  backup_job_id,
  refused,
  requestedBackup,
  results,
  scene,
  send,
} from "../../world/share-protection/deployment.ts"
import { failure, worker_id } from "../../world/share-protection/job-samples.ts"
import { backup_id, jobId, target_id } from "../../world/share-protection/samples.ts"

const first: Hold = { worker_id, fence: 2 }
const by_hand = { automatic: false, policy_id: null }

type Phase = "queued" | "assigned" | "running" | "releasing" | "failed"

const complete = (job: JobFacts) => completeJob(job, first, results.backup)

/** The history in which exactly one aggregate of the batch rejects it. */
const obstacles: ReadonlyArray<
  readonly [
    what: string,
    phase: Phase,
    obstacle: Batch,
    batch: (job: JobFacts) => Batch,
    code: string,
  ]
> = [
  [
    "assignJob, when the job has ended",
    "queued",
    [address(Job, backup_job_id, CancelJob.make({}))],
    (job) => assignJob(job, first),
    "svc.conflict",
  ],
  [
    "assignJob, when the worker is drained",
    "queued",
    [address(Worker, worker_id, DrainWorker.make({}))],
    (job) => assignJob(job, first),
    "svc.conflict",
  ],
  [
    "assignJob, when the worker has no slot free",
    "queued",
    [address(Worker, worker_id, AssignWorkerJob.make({ job_id: jobId(8), fence: 1 }))],
    (job) => assignJob(job, first),
    "svc.worker_unavailable",
  ],
  [
    "assignJob, when the fence is behind",
    "queued",
    [],
    (job) => assignJob(job, { ...first, fence: 1 }),
    "svc.conflict",
  ],
  [
    "assignJob, when the target is gone",
    "queued",
    [address(Lease, target_id, CloseLease.make({}))],
    (job) => assignJob(job, first),
    "svc.not_found",
  ],
  [
    "admitJob, when the backup failed",
    "queued",
    [address(Backup, backup_id, FailBackup.make({ reason: "" }))],
    admitJob,
    "svc.invalid_state_transition",
  ],
  [
    "startJob, when the backup failed",
    "assigned",
    [address(Backup, backup_id, FailBackup.make({ reason: "" }))],
    (job) => startJob(job, first),
    "svc.invalid_state_transition",
  ],
  ["completeJob, before the last step", "running", [], complete, "svc.invalid_state_transition"],
  [
    "completeJob, when the backup failed",
    "releasing",
    [address(Backup, backup_id, FailBackup.make({ reason: "" }))],
    complete,
    "svc.invalid_state_transition",
  ],
  [
    "failJob, when the backup failed",
    "running",
    [address(Backup, backup_id, FailBackup.make({ reason: "" }))],
    (job) => failJob(job, first, failure),
    "svc.invalid_state_transition",
  ],
  [
    "abandonJob, when the job has ended",
    "failed",
    [],
    (job) => abandonJob(job, first, failure),
    "svc.conflict",
  ],
  [
    "buryJob, when the job has ended",
    "failed",
    [],
    (job) => failLostJob(job, first, failure),
    "svc.conflict",
  ],
  [
    "rejectJob, when a worker has it",
    "assigned",
    [],
    (job) => rejectJob(job, failure),
    "svc.conflict",
  ],
  ["cancelJob, when the job has ended", "failed", [], cancelJob, "svc.conflict"],
  [
    "cancelJob, when the backup failed",
    "running",
    [address(Backup, backup_id, FailBackup.make({ reason: "" }))],
    cancelJob,
    "svc.invalid_state_transition",
  ],
  ["retryJob, when the job runs", "running", [], (job) => retryJob(job, by_hand), "svc.conflict"],
  [
    "retryJob, when the backup is retried already",
    "failed",
    [address(Backup, backup_id, RetryBackup.make({}))],
    (job) => retryJob(job, by_hand),
    "svc.conflict",
  ],
]

describe("a batch has no effect", () => {
  /** Puts the job into its phase, on a worker with one free slot. */
  const arrange = Effect.fnUntraced(function* (phase: Phase) {
    const job = yield* requestedBackup
    yield* send([address(Worker, worker_id, AssignWorkerJob.make({ job_id: jobId(7), fence: 1 }))])
    if (phase !== "queued") yield* send(assignJob(job, first))
    if (phase !== "queued" && phase !== "assigned") yield* send(startJob(job, first))
    if (phase === "releasing") {
      for (const to of job_steps.slice(1)) yield* advance(backup_job_id, first, to)
    }
    if (phase === "failed") yield* send(failJob(job, first, failure))
    return job
  })

  for (const [what, phase, obstacle, batch, code] of obstacles) {
    scene(what, () =>
      Effect.gen(function* () {
        const job = yield* arrange(phase)
        yield* send(obstacle)
        assert.equal(yield* refused(batch(job)), code)
      }),
    )
    if (obstacle.length === 0) continue
    scene(`${what}; all of it happens otherwise`, () =>
      Effect.gen(function* () {
        const job = yield* arrange(phase)
        const before = yield* Effect.flatMap(Log, (log) => log.head(""))
        const after = yield* send(batch(job))
        assert.isAbove(after, before)
      }),
    )
  }

  scene("assignJob, when the repository is locked", () =>
    Effect.gen(function* () {
      const job = yield* requestedBackup
      const locked = { job_id: jobId(8), worker_id, mode: "exclusive", fence: 2 } as const
      yield* send([address(Lease, target_id, AcquireLease.make(locked))])
      assert.equal(yield* refused(assignJob(job, { ...first, fence: 3 })), "svc.repository_locked")
    }),
  )
})
