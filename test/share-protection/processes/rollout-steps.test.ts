import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { AllowRollout, RecordBootFailure } from "#schemas/share-protection/fleet.ts"
import { DomainId, RolloutId, WorkerId } from "#schemas/share-protection/id.ts"
import { CreateRollout } from "#schemas/share-protection/rollout.ts"
import { BootWorker, DrainWorker, RegisterWorker } from "#schemas/share-protection/worker.ts"
import {
  ask,
  conducted,
  happenings,
  instant,
  pass,
  secondsOf,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  booted,
  keeping,
  room,
  standing,
  wordsOf,
} from "../../world/share-protection/conducted-fleet.ts"
import { project_id, uuid } from "../../world/share-protection/samples.ts"

const canary = DomainId.make("canary")
const other = DomainId.make("other")
const rollout_id = RolloutId.make(uuid(1))

const rollOut = (domain_ids = [canary, other], id = rollout_id) =>
  ask(
    address(Fleet, project_id, AllowRollout.make({ rollout_id: id })),
    address(Rollout, id, CreateRollout.make({ image: "image-2", domain_ids })),
  )

/** The events of a worker, in order. */
const livesOf = Effect.fnUntraced(function* (id: string) {
  const all = yield* happenings("worker")
  return all.flatMap((one) => (one.id === id ? one.event.type : []))
})

/** The replaced workers, in order. */
const replaced = Effect.map(happenings("rollout"), (all) =>
  all.flatMap(({ event }) => (event.type === "ReplacementStarted" ? [event.old_worker_id] : [])),
)

const went = ["WorkerRegistered", "WorkerDrainStarted", "WorkerRetirementStarted", "WorkerRetired"]

describe("a rollout", () => {
  conducted(
    "replaces one worker after another, the canary's first, and succeeds",
    Effect.gen(function* () {
      yield* standing("other-1", { domain_id: other })
      yield* standing("canary-1", { domain_id: canary })
      yield* standing("other-2", { domain_id: other })
      yield* standing("new", { domain_id: other, image: "image-2" })
      yield* standing("apart")
      const machines = yield* room
      machines.boot_ms = 60_000
      yield* keeping(machines)
      yield* rollOut()
      yield* pass("1 hour")
      assert.deepEqual(yield* replaced, ["canary-1", "other-1", "other-2"])
      assert.deepEqual(yield* types("rollout"), [
        "RolloutCreated",
        "ReplacementStarted",
        "ReplacementCompleted",
        "RolloutDomainCompleted",
        "ReplacementStarted",
        "ReplacementCompleted",
        "ReplacementStarted",
        "ReplacementCompleted",
        "RolloutDomainCompleted",
        "RolloutSucceeded",
      ])
      assert.deepEqual(yield* secondsOf("rollout", "ReplacementStarted"), [0, 60, 120])
      for (const id of ["canary-1", "other-1", "other-2"]) {
        assert.deepEqual(yield* livesOf(id), went)
      }
      for (const id of ["new", "apart"]) assert.deepEqual(yield* livesOf(id), ["WorkerRegistered"])
      assert.equal((yield* types("fleet")).at(-1), "RolloutEnded")
      const boots = (yield* happenings("worker")).flatMap(({ event }) =>
        event.type === "WorkerBootStarted" ? [event] : [],
      )
      assert.deepEqual(
        boots.map((boot) => boot.domain_id),
        [canary, other, other],
      )
      for (const boot of boots) assert.deepInclude(boot, { image: "image-2", project_id })
    }),
  )

  conducted(
    "keeps the old worker until the new one is ready, and lets it finish its jobs",
    Effect.gen(function* () {
      yield* standing("canary-1", { domain_id: canary })
      const machines = yield* room
      machines.boot_ms = 600_000
      yield* keeping(machines)
      yield* rollOut([canary])
      yield* pass("9 minutes")
      assert.deepEqual(yield* livesOf("canary-1"), went.slice(0, 2))
      yield* pass("1 minutes")
      assert.deepEqual(yield* livesOf("canary-1"), went)
    }),
  )

  conducted(
    "halts when the new worker fails to boot, and the old one accepts jobs again",
    Effect.gen(function* () {
      yield* standing("canary-1", { domain_id: canary })
      yield* standing("other-1", { domain_id: other })
      const machines = yield* room
      machines.boot_ms = Infinity
      yield* keeping(machines)
      yield* rollOut()
      yield* pass("1199 seconds")
      assert.deepEqual(yield* livesOf("canary-1"), ["WorkerRegistered", "WorkerDrainStarted"])
      yield* pass("1 seconds")
      assert.equal((yield* types("rollout")).at(-1), "RolloutHalted")
      assert.equal((yield* livesOf("canary-1")).at(-1), "WorkerUndrained")
      assert.deepEqual(yield* livesOf("other-1"), ["WorkerRegistered"])
      // The image caused the failure, so another rollout may start.
      assert.notInclude(yield* types("fleet"), "BootFailureRecorded")
      yield* rollOut([other], RolloutId.make(uuid(2)))
      assert.deepEqual(yield* replaced, ["canary-1", "other-1"])
    }),
  )

  conducted(
    "halts when there is no capacity for the new worker",
    Effect.gen(function* () {
      yield* standing("canary-1", { domain_id: canary })
      const machines = yield* room
      machines.room = 0
      yield* keeping(machines)
      yield* rollOut([canary])
      const [halted] = (yield* happenings("rollout")).slice(-1)
      assert.deepInclude(halted?.event, { reason: "There is no room for another machine." })
      assert.equal((yield* livesOf("canary-1")).at(-1), "WorkerUndrained")
    }),
  )

  conducted(
    "continues when the old worker dies meanwhile",
    Effect.gen(function* () {
      const beats = yield* standing("canary-1", { domain_id: canary })
      const machines = yield* room
      machines.boot_ms = 600_000
      yield* keeping(machines)
      yield* rollOut([canary])
      yield* Fiber.interrupt(beats)
      yield* pass("10 minutes")
      assert.equal((yield* livesOf("canary-1")).at(-1), "WorkerDied")
      assert.equal((yield* types("rollout")).at(-1), "RolloutSucceeded")
    }),
  )

  conducted(
    "continues when the new worker is drained immediately",
    Effect.gen(function* () {
      yield* standing("canary-1", { domain_id: canary })
      const machines = yield* room
      machines.boot_ms = Infinity
      const keeper = yield* keeping(machines)
      yield* rollOut([canary])
      yield* Fiber.interrupt(keeper)
      const [id = WorkerId.make("none")] = yield* booted
      const words = wordsOf({ image: "image-2", project_id, domain_id: canary })
      yield* ask(address(Worker, id, RegisterWorker.make(words)))
      yield* ask(address(Worker, id, DrainWorker.make({})))
      yield* keeping(machines)
      assert.equal((yield* types("rollout")).at(-1), "RolloutSucceeded")
    }),
  )

  conducted(
    "waits for a booting worker of the old image, and replaces it too",
    Effect.gen(function* () {
      const late = {
        worker_id: WorkerId.make("late"),
        image: "image-1",
        project_id,
        domain_id: canary,
      }
      const { worker_id, ...boot } = late
      yield* ask(address(Worker, worker_id, BootWorker.make(boot)))
      const machines = yield* room
      machines.boot_ms = 60_000
      yield* keeping(machines)
      yield* rollOut([canary])
      yield* pass("59 seconds")
      assert.deepEqual(yield* types("rollout"), ["RolloutCreated"])
      yield* pass("10 minutes")
      assert.deepEqual(yield* replaced, ["late"])
      assert.equal((yield* types("rollout")).at(-1), "RolloutSucceeded")
    }),
  )

  conducted(
    "waits while too many boots have failed recently",
    Effect.gen(function* () {
      yield* standing("canary-1", { domain_id: canary })
      const worker_id = WorkerId.make("gone")
      for (const seconds of [-300, -200, -100]) {
        const failure = { worker_id, at: instant(seconds), reason: "It did not come up." }
        yield* ask(address(Fleet, project_id, RecordBootFailure.make(failure)))
      }
      yield* keeping(yield* room)
      yield* rollOut([canary])
      yield* pass("6899 seconds")
      assert.deepEqual(yield* types("rollout"), ["RolloutCreated"])
      yield* pass("1 seconds")
      assert.equal((yield* types("rollout")).at(-1), "RolloutSucceeded")
    }),
  )

  conducted(
    "replaces workers without a domain as those of the default domain",
    Effect.gen(function* () {
      yield* standing("first")
      yield* keeping(yield* room)
      yield* rollOut([DomainId.make("default")])
      assert.deepEqual(yield* livesOf("first"), went)
    }),
  )

  conducted(
    "succeeds at once if there is nothing to replace",
    Effect.gen(function* () {
      yield* keeping(yield* room)
      yield* rollOut()
      assert.equal((yield* types("rollout")).at(-1), "RolloutSucceeded")
      assert.equal((yield* types("fleet")).at(-1), "RolloutEnded")
    }),
  )

  conducted(
    "runs each step once despite repeated kills of the conductor",
    Effect.gen(function* () {
      yield* standing("canary-1", { domain_id: canary })
      yield* standing("other-1", { domain_id: other })
      const machines = yield* room
      yield* rollOut()
      for (let turns = 0; turns < 60; turns++) {
        const keeper = yield* Effect.forkScoped(Effect.scoped(keeping(machines)))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(keeper)
      }
      yield* keeping(machines)
      assert.equal((yield* types("rollout")).at(-1), "RolloutSucceeded")
      assert.deepEqual(yield* replaced, ["canary-1", "other-1"])
      assert.lengthOf(yield* booted, 2)
    }),
  )
})
