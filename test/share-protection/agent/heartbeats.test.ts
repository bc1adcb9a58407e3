import { assert, describe } from "@effect/vitest"
import { Effect, Option } from "effect"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { inWorld, until, worker } from "../../world/share-protection/agents.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"

describe("an agent whose heartbeats fail", () => {
  const breaking = (live: LiveWorkers["Service"], broken_max: number) => {
    let beats = 0
    const beat: typeof live.publish = (message) =>
      Effect.suspend(() => (++beats > broken_max ? live.publish(message) : Effect.die("broken")))
    return Effect.provideService(worker(), LiveWorkers, { ...live, publish: beat })
  }

  inWorld("continues after a failed heartbeat", () =>
    Effect.gen(function* () {
      const live = yield* LiveWorkers
      const { dismissed } = yield* breaking(live, 1)
      yield* until(Effect.sync(() => live.find(worker_id) !== undefined))
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(dismissed, 1)))
    }),
  )

  inWorld("is dismissed after three failed heartbeats", () =>
    Effect.gen(function* () {
      const { dismissed } = yield* breaking(yield* LiveWorkers, Infinity)
      assert.instanceOf(yield* dismissed, WorkerUnavailable)
    }),
  )
})
