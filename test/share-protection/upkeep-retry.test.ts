import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { type JobFailure, rejectJob } from "#actors/share-protection/jobs/course.ts"
import { upkeep } from "#actors/share-protection/processes/upkeep.ts"
import { ask, begin, conducted, pass } from "./conducted.ts"
import { availableTarget, maintain, ownJobId } from "./conducted-scenes.ts"
import { factsOf, jobNow } from "./course.ts"

const year_s = 31_536_000

const upkeeping = begin(
  upkeep({ maintenance_interval_seconds: year_s, restore_test_interval_seconds: 0 }),
)

const failure: JobFailure = {
  code: "svc.engine_error",
  detail: "It exited with 1.",
  wrote_nothing: true,
  category: "operator_action_required",
}

describe("a job that failed", () => {
  conducted(
    "of the service's own is tried again by itself a few times, ever later",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* upkeeping
      yield* maintain(1, 1)
      const again = Effect.map(jobNow(ownJobId(1)), ({ attempt }) => attempt)
      for (let tried = 1; tried <= 5; tried++) {
        yield* ask(...rejectJob(yield* factsOf(ownJobId(1)), failure))
        yield* pass(10 * 2 ** (tried - 1) * 1000 - 1)
        assert.equal(yield* again, tried)
        yield* pass(1)
        assert.equal(yield* again, tried + 1)
      }
      yield* ask(...rejectJob(yield* factsOf(ownJobId(1)), failure))
      yield* pass("23 hours")
      assert.deepInclude(yield* jobNow(ownJobId(1)), { state: "error", attempt: 6 })
    }),
  )
})
