import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import type { DispatchView } from "#actors/share-protection/dispatch/view.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { assignJob, settleJob } from "#actors/share-protection/jobs/transitions.ts"
import { silentWorkers } from "#actors/share-protection/processes/worker-silence.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { ApplyDomain, ConfigureDomain } from "#schemas/share-protection/domain.ts"
import { DomainId, WorkerId } from "#schemas/share-protection/id.ts"
import {
  BootWorker,
  DrainWorker,
  MarkWorkerDead,
  RegisterWorker,
  RetireWorker,
} from "#schemas/share-protection/worker.ts"
import {
  ask,
  conducted,
  happenings,
  pass,
  secondsOf,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  booted,
  keeping,
  room,
  standing,
  states,
  wordsOf,
} from "../../world/share-protection/conducted-fleet.ts"
import { availableTarget, backUp } from "../../world/share-protection/conducted-scenes.ts"
import { factsOf } from "../../world/share-protection/deployment.ts"
import { jobId, project_id } from "../../world/share-protection/samples.ts"

const deaf = { publish: () => Effect.void, progressOf: () => undefined, heard: () => 0 }

const first = WorkerId.make("first")
const boot = { project_id, domain_id: null, image: "image-1" }

const apply = Effect.fnUntraced(function* (
  name: string,
  settings: Omit<typeof ConfigureDomain.Type, "type">,
) {
  yield* ask(address(Domain, name, ConfigureDomain.make(settings)))
  yield* ask(address(Domain, name, ApplyDomain.make({})))
})

describe("a silent worker", () => {
  conducted(
    "is dead after the deadline, unlike one with heartbeats",
    Effect.gen(function* () {
      const silent = yield* standing("silent")
      yield* standing("alive")
      yield* keeping(undefined)
      yield* pass("50 seconds")
      // Its last heartbeat was at 40 s.
      yield* Fiber.interrupt(silent)
      yield* pass("49 seconds")
      assert.deepEqual(yield* secondsOf("worker", "WorkerDied"), [])
      yield* pass("10 minutes")
      assert.deepEqual(yield* secondsOf("worker", "WorkerDied"), [100])
      assert.deepEqual(yield* states, ["WorkerDied", "WorkerRegistered"])
    }),
  )

  conducted(
    "is dead even if it is draining or retiring, but not while it boots",
    Effect.gen(function* () {
      for (const name of ["drains", "retires"]) {
        const fiber = yield* standing(name)
        yield* Fiber.interrupt(fiber)
        yield* ask(address(Worker, name, DrainWorker.make({})))
      }
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* ask(address(Worker, "retires", RetireWorker.make({})))
      yield* ask(address(Worker, first, BootWorker.make(boot)))
      yield* keeping(undefined)
      yield* pass("1 hour")
      assert.deepEqual(yield* states, ["WorkerDied", "WorkerRetired", "WorkerBootStarted"])
    }),
  )

  conducted(
    "has a full deadline from when it is ready, independent of its boot time",
    Effect.gen(function* () {
      yield* ask(address(Worker, first, BootWorker.make(boot)))
      yield* keeping(undefined)
      yield* pass("10 minutes")
      yield* ask(address(Worker, first, RegisterWorker.make(wordsOf(boot))))
      yield* pass("59 seconds")
      assert.deepEqual(yield* states, ["WorkerRegistered"])
      yield* pass("1 seconds")
      assert.deepEqual(yield* states, ["WorkerDied"])
    }),
  )

  conducted(
    "has a full deadline when another conductor takes over",
    Effect.gen(function* () {
      const alive = yield* standing("silent")
      yield* Fiber.interrupt(alive)
      yield* pass("10 minutes")
      yield* keeping(undefined)
      yield* pass("59 seconds")
      assert.deepEqual(yield* states, ["WorkerRegistered"])
      yield* pass("1 seconds")
      assert.deepEqual(yield* states, ["WorkerDied"])
    }),
  )
})

describe("a suspended conductor", () => {
  const workers = new Map([[first, { state: "ready", position: 1 }]])
  // The function reads nothing else from the view.
  const view = { workers } as unknown as Pick<DispatchView, "workers">
  const silences = () => {
    const silent = silentWorkers({ ...deaf, find: () => undefined }, 60_000)
    return (now: number) => silent(view, now).now.map(({ command_id }) => command_id)
  }

  it("ignores heartbeats that it missed", () => {
    const at = silences()
    assert.deepEqual(at(0), [])
    assert.deepEqual(at(200_000), [])
    assert.deepEqual(at(259_999), [])
    assert.deepEqual(at(260_000), ["silent-first-200000"])
  })

  it("does not count a short delay as a suspension", () => {
    const at = silences()
    assert.deepEqual(at(0), [])
    assert.deepEqual(at(89_000), ["silent-first-0"])
  })
})

describe("the fleet", () => {
  conducted(
    "boots its minimum of workers one by one, with the cooldown in between",
    Effect.gen(function* () {
      yield* keeping(yield* room, { min_workers: 3 })
      yield* pass("10 minutes")
      assert.deepEqual(yield* secondsOf("fleet", "BootAllowed"), [0, 180, 360])
      assert.deepEqual(yield* states, Array(3).fill("WorkerRegistered"))
    }),
  )

  conducted(
    "replaces a dead worker, and destroys its machine",
    Effect.gen(function* () {
      const machines = yield* room
      yield* keeping(machines, { min_workers: 1 })
      yield* pass("10 minutes")
      const [before] = yield* booted
      assert.isDefined(before)
      const machine = machines.machines.get(before)
      assert.isTrue(machine?.is_active)
      yield* ask(address(Worker, before, MarkWorkerDead.make({ reason: "It burns." })))
      yield* pass("1 minutes")
      assert.deepEqual(yield* states, ["WorkerDied", "WorkerRegistered"])
      assert.deepEqual([...machines.machines.keys()], (yield* booted).slice(1))
    }),
  )

  conducted(
    "boots none without machines or without an image",
    Effect.gen(function* () {
      const without = yield* keeping(undefined, { min_workers: 2 })
      yield* pass("1 hour")
      yield* Fiber.interrupt(without)
      yield* keeping(yield* room, { min_workers: 2, worker_boot_image: "" })
      yield* pass("1 hour")
      assert.deepEqual(yield* types("fleet"), [])
    }),
  )

  conducted(
    "grows by one worker at a time while jobs wait for a slot, up to its maximum",
    Effect.gen(function* () {
      const machines = yield* room
      machines.boot_ms = 100_000
      for (const number of [1, 2, 3]) yield* availableTarget(number)
      yield* keeping(machines, { max_workers: 2, worker_boot_cooldown_seconds: 10 })
      yield* pass("1 minutes")
      assert.deepEqual(yield* secondsOf("fleet", "BootAllowed"), [])
      yield* backUp(1, 1)
      yield* pass("1 minutes")
      // The booting worker has enough capacity for one job.
      assert.deepEqual(yield* secondsOf("fleet", "BootAllowed"), [60])
      yield* backUp(2, 2)
      yield* backUp(3, 3)
      yield* pass("1 hour")
      assert.deepEqual(yield* secondsOf("fleet", "BootAllowed"), [60, 120])
    }),
  )

  conducted(
    "does not grow for jobs that wait for other jobs, or for their target",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* standing("first")
      yield* backUp(1, 1)
      yield* backUp(2, 1)
      yield* ask(...assignJob(yield* factsOf(jobId(1)), { worker_id: first, fence: 1 }))
      yield* keeping(yield* room)
      yield* pass("10 minutes")
      assert.deepEqual(yield* types("fleet"), [])
      yield* ask(...settleJob(yield* factsOf(jobId(1)), { worker_id: first, fence: 1 }))
      yield* pass("10 minutes")
      assert.deepEqual(yield* types("fleet"), [])
    }),
  )

  conducted(
    "stops after failed boots, and tries again after the window",
    Effect.gen(function* () {
      const machines = yield* room
      machines.boot_ms = Infinity
      yield* keeping(machines, { min_workers: 1 })
      yield* pass("2 hours")
      const failed = [1200, 2400, 3600]
      assert.deepEqual(yield* secondsOf("fleet", "BootFailureRecorded"), failed)
      assert.deepEqual(yield* secondsOf("fleet", "BootAllowed"), [0, 1200, 2400])
      assert.deepEqual([...machines.machines.keys()], [])
      machines.boot_ms = 0
      yield* pass("3 hours")
      assert.deepEqual(yield* secondsOf("fleet", "BootAllowed"), [0, 1200, 2400, 8400])
      assert.equal((yield* states).at(-1), "WorkerRegistered")
    }),
  )

  conducted(
    "counts missing capacity as a failure, and waits while compute is unavailable",
    Effect.gen(function* () {
      const machines = yield* room
      machines.is_reachable = false
      yield* keeping(machines, { min_workers: 1 })
      yield* pass("10 minutes")
      assert.deepEqual(yield* types("fleet"), ["BootAllowed"])
      machines.is_reachable = true
      machines.room = 0
      yield* pass("1 seconds")
      const twice = ["BootAllowed", "BootFailureRecorded", "BootAllowed", "BootFailureRecorded"]
      assert.deepEqual(yield* types("fleet"), twice)
    }),
  )

  conducted(
    "boots once despite restarts of the conductor",
    Effect.gen(function* () {
      const machines = yield* room
      for (let turns = 0; turns < 40; turns++) {
        const keeper = yield* Effect.forkScoped(
          Effect.scoped(keeping(machines, { min_workers: 1 })),
        )
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(keeper)
      }
      yield* keeping(machines, { min_workers: 1 })
      yield* pass("1 minutes")
      assert.deepEqual(yield* types("fleet"), ["BootAllowed"])
      assert.lengthOf(yield* booted, 1)
    }),
  )
})

describe("a worker that retires", () => {
  conducted(
    "is retired when its last job ends, and its machine is destroyed",
    Effect.gen(function* () {
      const machines = yield* room
      const keeper = yield* keeping(machines, { min_workers: 1 })
      yield* pass("1 minutes")
      const [id = first] = yield* booted
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* ask(...assignJob(yield* factsOf(jobId(1)), { worker_id: id, fence: 1 }))
      yield* ask(address(Worker, id, DrainWorker.make({})))
      yield* ask(address(Worker, id, RetireWorker.make({})))
      assert.isTrue(machines.machines.has(id))
      yield* ask(...settleJob(yield* factsOf(jobId(1)), { worker_id: id, fence: 1 }))
      assert.isFalse(machines.machines.has(id))
      const of_it = (yield* happenings("worker")).filter((one) => one.id === id)
      assert.equal(of_it.at(-1)?.event.type, "WorkerRetired")
      yield* Fiber.interrupt(keeper)
    }),
  )

  conducted(
    "keeps a machine that the service did not boot",
    Effect.gen(function* () {
      const machines = yield* room
      yield* standing("first")
      yield* keeping(machines)
      machines.is_reachable = false
      yield* ask(address(Worker, first, DrainWorker.make({})))
      yield* ask(address(Worker, first, RetireWorker.make({})))
      assert.deepEqual(yield* states, ["WorkerRetired"])
    }),
  )
})

describe("a domain with workers of its own", () => {
  conducted(
    "has them once its settings are applied, with its own image, up to its maximum",
    Effect.gen(function* () {
      yield* keeping(yield* room, { worker_boot_cooldown_seconds: 0 })
      const settings = { min_workers: 3, max_workers: 2, worker_boot_image: "image-2" }
      yield* ask(address(Domain, "domain-1", ConfigureDomain.make(settings)))
      yield* pass("1 minutes")
      assert.deepEqual(yield* booted, [])
      yield* ask(address(Domain, "domain-1", ApplyDomain.make({})))
      yield* pass("1 minutes")
      const boots = (yield* happenings("worker")).flatMap(({ event }) =>
        event.type === "WorkerBootStarted" ? [event] : [],
      )
      const wanted = { domain_id: DomainId.make("domain-1"), image: "image-2" }
      assert.lengthOf(boots, 2)
      for (const event of boots) assert.deepInclude(event, wanted)
      yield* apply("domain-1", { min_workers: null, max_workers: null })
      yield* pass("1 hour")
      assert.lengthOf(yield* booted, 2)
    }),
  )

  conducted(
    "is the pool of all others if it is the default domain",
    Effect.gen(function* () {
      yield* keeping(yield* room, { worker_boot_cooldown_seconds: 0 })
      yield* apply("default", { min_workers: 2 })
      yield* pass("1 minutes")
      const boots = (yield* happenings("worker")).flatMap(({ event }) =>
        event.type === "WorkerBootStarted" ? [event] : [],
      )
      assert.lengthOf(boots, 2)
      for (const event of boots) assert.deepInclude(event, { domain_id: null, image: "image-1" })
    }),
  )
})
