import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { queueTargetJob } from "#actors/share-protection/requests.ts"
import { Log } from "#events/log.ts"
import {
  agentOptions,
  enrolledWith,
  give,
  hold,
  inWorld,
  ran,
  settled,
  until,
  worker,
} from "../../world/share-protection/agents.ts"
import { backup_job_id, send } from "../../world/share-protection/deployment.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import { jobId, project_id, target_id } from "../../world/share-protection/samples.ts"

describe("heartbeats", () => {
  inWorld(
    "report the progress of each job: it never decreases, and is below 100 until the end",
    (world) =>
      Effect.gen(function* () {
        const { progressOf, find } = yield* LiveWorkers
        yield* worker({ heartbeat_interval_seconds: 0.1 })
        yield* enrolledWith()
        for (const memory of world.s3.values()) Object.assign(memory, { write_ms: 150 })
        const seen: Array<number> = []
        const looking = yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.sync(() => {
                const values = progressOf(backup_job_id)
                if (values && values.progress !== seen.at(-1)) seen.push(values.progress)
              }),
              Effect.sleep(1),
            ),
          ),
        )
        const came = yield* hold(world, "buckets.usage")
        yield* give(backup_job_id)
        yield* came
        yield* until(Effect.sync(() => progressOf(backup_job_id)?.progress === 99))
        assert.deepInclude(progressOf(backup_job_id), { bytes_done: 50, bytes_total: 100 })
        assert.lengthOf(find(worker_id)?.jobs ?? [], 1)
        yield* (yield* Agents).cancel(worker_id, backup_job_id, 2)
        yield* settled(backup_job_id)
        yield* until(Effect.sync(() => progressOf(backup_job_id) === undefined))
        yield* Fiber.interrupt(looking)
        assert.deepEqual(
          seen,
          seen.toSorted((a, b) => a - b),
        )
        assert.isAtLeast(seen.length, 2)
        assert.equal(seen.at(-1), 99)
      }),
  )

  inWorld("continue at their interval without jobs, and write nothing", () =>
    Effect.gen(function* () {
      const { find } = yield* LiveWorkers
      yield* worker({ heartbeat_interval_seconds: 0.1 })
      const head = yield* (yield* Log).head("")
      const first = find(worker_id)?.received_at ?? 0
      yield* until(Effect.sync(() => (find(worker_id)?.received_at ?? 0) > first + 250))
      assert.equal(yield* (yield* Log).head(""), head)
    }),
  )
})

describe("the secrets of a job", () => {
  inWorld("appear in no event, log line or error", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      // The secrets that a job receives: the keys, the password and its own token.
      const given = () => [
        ...[...world.tenants.secrets.values()].map(({ payload }) => payload),
        [...world.tenants.tokens.keys()].at(-1) ?? "",
      ]
      assert.lengthOf(given(), 4)
      const chatty = () => `The engine said: ${given().join(" ")}`
      world.instead.set(
        "engine.backup",
        Effect.suspend(() =>
          Effect.fail(new EngineFailed({ detail: chatty(), wrote_nothing: true })),
        ),
      )
      const { error } = yield* ran(backup_job_id)
      assert.match(error?.detail ?? "", /^The engine said: <redacted>/)
      const maintenance = jobId(9)
      yield* send([queueTargetJob(maintenance, "maintenance", target_id, project_id)])
      world.instead.set(
        "engine.maintain",
        Effect.suspend(() => Effect.die(new Error(chatty()))),
      )
      yield* ran(maintenance)
      assert.match(world.logged.join("\n"), /The engine said: <redacted>/)
      const commits = yield* Stream.runCollect((yield* Log).read(""))
      const replyOf = [
        ...commits.map((commit) => JSON.stringify(commit)),
        ...world.logged,
        inspect(world.reports, { depth: 10 }),
      ].join("\n")
      for (const secret of [...given(), ...world.tenants.tokens.keys()]) {
        assert.isFalse(replyOf.includes(secret), "a secret was revealed")
      }
      assert.isTrue(replyOf.includes(agentOptions.registration.hostname), "the rest is complete")
    }),
  )
})
