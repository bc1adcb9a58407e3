/** Jobs that are missing from the heartbeats of their worker. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import type { JobId } from "#schemas/share-protection/id.ts"
import type { JobStep } from "#schemas/share-protection/job.ts"
import { MarkWorkerDead } from "#schemas/share-protection/worker.ts"
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
  complete,
  start,
} from "../../world/share-protection/conducted-scenes.ts"
import { jobNow, workerNow } from "../../world/share-protection/deployment.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import { jobId } from "../../world/share-protection/samples.ts"

const options = { ...dispatch_options, worker_boot_max_failures: 2 }

const beat = Effect.fnUntraced(function* (...jobs: ReadonlyArray<JobId>) {
  const progress = jobs.map((job_id) => ({ job_id, progress: 1, bytes_done: 0, bytes_total: 0 }))
  yield* (yield* LiveWorkers).publish({ worker_id, jobs: progress })
})

/** A number of heartbeats, one every 20 s. */
const beats = Effect.fnUntraced(function* (count: number, ...jobs: ReadonlyArray<JobId>) {
  for (let n = 0; n < count; n++) {
    yield* pass("20 seconds")
    yield* beat(...jobs)
  }
  yield* pass("1 seconds")
})

const working = Effect.fnUntraced(function* (to: JobStep = "transferring") {
  yield* begin(dispatch(options))
  const agent = yield* ready(worker_id)
  yield* availableTarget(1)
  yield* beat()
  yield* backUp(1, 1)
  yield* start(jobId(1), to)
  return agent
})

const stateOf = Effect.map(jobNow(jobId(1)), ({ state }) => state)

describe("a job missing from its worker's heartbeats", () => {
  conducted(
    "fails after some heartbeats, and frees its slot when the agent confirms that it does not run",
    Effect.gen(function* () {
      const agent = yield* working()
      yield* beats(1)
      assert.equal(yield* stateOf, "transferring")
      yield* beats(3)
      const { state, error } = yield* jobNow(jobId(1))
      assert.equal(state, "error")
      assert.equal(error?.code, "svc.worker_unavailable")
      assert.isFalse(error?.wrote_nothing)
      assert.deepEqual(agent.cancelled, [[jobId(1), 1]])
      assert.deepEqual((yield* workerNow()).running_jobs, [])
      assert.equal((yield* types("lease")).at(-1), "LeaseReleased")
    }),
  )

  conducted(
    "keeps its slot and its lease until its agent confirms that",
    Effect.gen(function* () {
      const agent = yield* working("connecting_repository")
      agent.has_it = true
      yield* beats(4)
      assert.equal(yield* stateOf, "error")
      assert.isTrue((yield* jobNow(jobId(1))).error?.wrote_nothing)
      assert.deepEqual((yield* workerNow()).running_jobs, [{ job_id: jobId(1), fence: 1 }])
      assert.deepEqual(yield* types("lease"), ["LeaseAcquired"])
    }),
  )

  conducted(
    "continues while some heartbeats list it",
    Effect.gen(function* () {
      yield* working()
      for (let round = 0; round < 4; round++) {
        yield* beats(2)
        yield* beats(1, jobId(1))
      }
      assert.equal(yield* stateOf, "transferring")
    }),
  )

  conducted(
    "continues without heartbeats, because silence has its own deadline",
    Effect.gen(function* () {
      yield* working()
      yield* pass("10 minutes")
      assert.equal(yield* stateOf, "transferring")
    }),
  )

  conducted(
    "continues if all heartbeats predate its start",
    Effect.gen(function* () {
      yield* working()
      yield* beats(2)
      assert.equal(yield* stateOf, "transferring")
      yield* beats(1, jobId(1))
      yield* beats(1)
      assert.equal(yield* stateOf, "transferring")
    }),
  )

  conducted(
    "stays completed if it succeeded",
    Effect.gen(function* () {
      yield* working("releasing")
      yield* beats(1)
      yield* complete(jobId(1))
      yield* beats(4)
      assert.equal(yield* stateOf, "available")
    }),
  )

  conducted(
    "is ignored if its worker is dead, which is handled elsewhere",
    Effect.gen(function* () {
      yield* working()
      yield* ask(address(Worker, worker_id, MarkWorkerDead.make({ reason: "silent" })))
      yield* beats(2)
      assert.equal(yield* stateOf, "transferring")
    }),
  )
})
