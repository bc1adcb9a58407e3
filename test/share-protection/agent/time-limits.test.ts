import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import {
  assertNothingLeft,
  enrolledWith,
  inWorld,
  ran,
  worker,
} from "../../world/share-protection/agents.ts"
import { backup_job_id } from "../../world/share-protection/deployment.ts"

describe("a call of the engine", () => {
  inWorld("is stopped after its time limit", (world) =>
    Effect.gen(function* () {
      yield* worker({ subprocess_timeout_seconds: 1 })
      yield* enrolledWith()
      world.engine.next.set("backup", { hangs: true })
      const { error } = yield* ran(backup_job_id)
      const detail = "The engine did not finish within 1 s."
      assert.deepInclude(error, { code: "svc.engine_error", detail, wrote_nothing: true })
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("is stopped after the time limit of its job", (world) =>
    Effect.gen(function* () {
      yield* worker({ max_command_duration_seconds: 3 })
      yield* enrolledWith()
      world.engine.next.set("backup", { hangs: true })
      const { error } = yield* ran(backup_job_id)
      const detail = "The job did not finish within 3 s."
      assert.deepInclude(error, { code: "svc.engine_error", detail, wrote_nothing: true })
      yield* assertNothingLeft(world)
    }),
  )
})
