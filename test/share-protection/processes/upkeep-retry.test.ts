import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { cancelJob, type JobFailure, rejectJob } from "#actors/share-protection/jobs/transitions.ts"
import { upkeep } from "#actors/share-protection/processes/upkeep.ts"
import { definePolicy, deletePolicy } from "#actors/share-protection/requests.ts"
import type { DefinePolicy } from "#schemas/share-protection/policy.ts"
import {
  ask,
  begin,
  conducted,
  happenings,
  pass,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  backUp,
  maintain,
  ownJobId,
  shareId,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf, jobNow } from "../../world/share-protection/deployment.ts"
import { jobId, other_policy_id, policy, policy_id } from "../../world/share-protection/samples.ts"

const year_s = 31_536_000

const upkeeping = begin(
  upkeep({ maintenance_interval_seconds: year_s, restore_test_interval_seconds: 0 }),
)

const hourly = begin(
  upkeep({ maintenance_interval_seconds: 3600, restore_test_interval_seconds: 0 }),
)

const define = (more: Partial<typeof DefinePolicy.Type> = {}) =>
  ask(...definePolicy(shareId(1), { ...policy, target_id: targetId(1), ...more }, 100))

const failure = (wrote_nothing: boolean): JobFailure => ({
  ...{ code: "svc.engine_error", detail: "It broke.", wrote_nothing },
  category: "operator_action_required",
})

/** Fails the job of the first backup before a worker accepts it. */
const fail = (wrote_nothing: boolean) =>
  Effect.flatMap(factsOf(jobId(1)), (job) => ask(...rejectJob(job, failure(wrote_nothing))))

describe("a job that failed", () => {
  conducted(
    "of the service itself is retried automatically a few times, with growing pauses",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* upkeeping
      yield* maintain(1, 1)
      const again = Effect.map(jobNow(ownJobId(1)), ({ attempt }) => attempt)
      for (let tried = 1; tried <= 5; tried++) {
        yield* ask(...rejectJob(yield* factsOf(ownJobId(1)), failure(true)))
        yield* pass(10 * 2 ** (tried - 1) * 1000 - 1)
        assert.equal(yield* again, tried)
        yield* pass(1)
        assert.equal(yield* again, tried + 1)
      }
      yield* ask(...rejectJob(yield* factsOf(ownJobId(1)), failure(true)))
      yield* pass("23 hours")
      assert.deepInclude(yield* jobNow(ownJobId(1)), { state: "error", attempt: 6 })
    }),
  )

  conducted(
    "is retried automatically up to the maximum of its policy, with growing pauses",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* hourly
      yield* backUp(1, 1, { max_retries: 2 })
      yield* fail(true)
      yield* pass("9 seconds")
      assert.equal((yield* jobNow(jobId(1))).state, "error")
      yield* pass("1 seconds")
      assert.deepInclude(yield* jobNow(jobId(1)), { state: "queued", attempt: 2, retries: 1 })
      assert.equal((yield* types("backup")).at(-1), "BackupRetried")
      yield* fail(true)
      yield* pass("19 seconds")
      assert.equal((yield* jobNow(jobId(1))).state, "error")
      yield* pass("1 seconds")
      assert.deepInclude(yield* jobNow(jobId(1)), { state: "queued", attempt: 3, retries: 2 })
      yield* fail(true)
      yield* pass("1 hour")
      assert.deepInclude(yield* jobNow(jobId(1)), { state: "error", attempt: 3 })
    }),
  )

  conducted(
    "is not retried if it may have written a snapshot, or was cancelled",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* hourly
      yield* backUp(1, 1, { max_retries: 9 })
      yield* backUp(2, 1, { max_retries: 9 })
      yield* fail(false)
      yield* ask(...cancelJob(yield* factsOf(jobId(2))))
      yield* pass("23 hours")
      for (const number of [1, 2]) {
        assert.deepInclude(yield* jobNow(jobId(number)), { state: "error", attempt: 1 })
      }
    }),
  )

  conducted(
    "is not retried after another backup of the share has started, or after a day",
    Effect.gen(function* () {
      yield* availableTarget(1)
      const running = yield* hourly
      yield* backUp(1, 1, { max_retries: 9 })
      yield* fail(true)
      yield* backUp(2, 1, { share_id: shareId(1) })
      yield* pass("1 hour")
      assert.deepInclude(yield* jobNow(jobId(1)), { state: "error", attempt: 1 })
      yield* Fiber.interrupt(running)
      yield* ask(...rejectJob(yield* factsOf(jobId(2)), failure(false)))
      yield* pass("23 hours")
      yield* hourly
      assert.deepInclude(yield* jobNow(jobId(1)), { state: "error", attempt: 1 })
    }),
  )

  conducted(
    "keeps its own policy, or none if that is deleted",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define()
      yield* hourly
      yield* backUp(1, 1, { policy_id, max_retries: 9 })
      const policyOf = Effect.map(happenings("policy"), (all) =>
        all.flatMap(({ event }) => (event.type === "ShareBackupStarted" ? [event.policy_id] : [])),
      )
      yield* fail(true)
      yield* pass("10 seconds")
      assert.deepEqual(yield* policyOf, [policy_id, policy_id])
      yield* fail(true)
      yield* ask(...deletePolicy(shareId(1), { ...policy, target_id: targetId(1) }))
      yield* define({ id: other_policy_id })
      yield* pass("20 seconds")
      assert.deepEqual(yield* policyOf, [policy_id, policy_id, null])
    }),
  )
})
