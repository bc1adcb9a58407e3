/** Contract of every LiveWorkers adapter. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type JobProgress, LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"

const worker_id = WorkerId.make("worker-1")
const other_id = WorkerId.make("worker-2")

const jobId = (number: number) =>
  JobId.make(`00000000-0000-7000-8000-${String(number).padStart(12, "0")}`)
const jobProgress = (number: number, progress: number): JobProgress => ({
  job_id: jobId(number),
  progress,
  bytes_done: progress * 10,
  bytes_total: 1000,
})

/** The tests, by title. */
export const promises: Readonly<Record<string, Effect.Effect<void, never, LiveWorkers>>> = {
  "has no values of an unknown worker or job": Effect.gen(function* () {
    const { find, progressOf } = yield* LiveWorkers
    assert.isUndefined(find("nobody"))
    assert.isUndefined(progressOf(jobId(1)))
  }),

  "knows what a worker jobProgress last, and when": Effect.gen(function* () {
    const { publish: beat, find, progressOf } = yield* LiveWorkers
    const before = Date.now()
    yield* beat({ worker_id, jobs: [jobProgress(1, 5)] })
    yield* beat({ worker_id, jobs: [jobProgress(1, 6), jobProgress(2, 7)] })
    const { received_at: heard_at = 0, ...heard } = find(worker_id) ?? {}
    assert.deepEqual(heard, { worker_id, jobs: [jobProgress(1, 6), jobProgress(2, 7)] })
    assert.isAtLeast(heard_at, before)
    assert.isAtMost(heard_at, Date.now())
    assert.deepEqual(progressOf(jobId(1)), jobProgress(1, 6))
    assert.deepEqual(progressOf(jobId(2)), jobProgress(2, 7))
  }),

  "forgets a job that its worker does not name any more": Effect.gen(function* () {
    const { publish: beat, find, progressOf } = yield* LiveWorkers
    yield* beat({ worker_id, jobs: [jobProgress(1, 5), jobProgress(2, 5)] })
    yield* beat({ worker_id, jobs: [jobProgress(2, 6)] })
    assert.isUndefined(progressOf(jobId(1)))
    yield* beat({ worker_id, jobs: [] })
    assert.isUndefined(progressOf(jobId(2)))
    assert.deepEqual(find(worker_id)?.jobs, [])
  }),

  "follows a job from one worker to the next": Effect.gen(function* () {
    const { publish: beat, find, progressOf } = yield* LiveWorkers
    yield* beat({ worker_id, jobs: [jobProgress(1, 50)] })
    yield* beat({ worker_id: other_id, jobs: [jobProgress(1, 3)] })
    assert.deepEqual(progressOf(jobId(1)), jobProgress(1, 3))
    yield* beat({ worker_id, jobs: [] })
    assert.deepEqual(progressOf(jobId(1)), jobProgress(1, 3))
    assert.deepEqual(find(other_id)?.jobs, [jobProgress(1, 3)])
  }),
}
