/**
 * A deployment for conductor tests: its clock starts at noon and advances only as tests specify.
 */
import { it } from "@effect/vitest"
import { Clock, type Duration, Effect, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { type Process, runProcess } from "#actors/process.ts"
import type { DispatchOptions } from "#actors/share-protection/dispatch/dispatch.ts"
import { type Agent, Agents } from "#actors/share-protection/ports/agents.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"
import { agentsMemory } from "./memory/agents.ts"
import { at, domain_id, project_id } from "./samples.ts"

/** Timeouts and limits of dispatch in these tests; heartbeats arrive every 20 s. */
export const dispatch_options: DispatchOptions = {
  command_timeout_seconds: 30,
  queued_job_deadline_seconds: 300,
  max_command_duration_seconds: 21_600,
  worker_heartbeat_deadline_seconds: 60,
  worker_boot_max_failures: 3,
  worker_boot_failure_window_seconds: 7200,
}

const app = Layer.mergeAll(host, LiveWorkers.memory, agentsMemory(dispatch_options)).pipe(
  Layer.provideMerge(logMemory),
)

type Services = Layer.Success<typeof app> | Scope.Scope

export const noon = Date.parse(at)

/** A timestamp, in seconds after noon. */
export const instant = (seconds: number) => new Date(noon + seconds * 1000).toISOString()

export const conducted = (name: string, body: Effect.Effect<void, unknown, Services>) =>
  it.effect(name, () => Effect.andThen(TestClock.setTime(noon), body).pipe(Effect.provide(app)))

const turns = 40

/** Waits until the log no longer grows. */
export const settled = Effect.gen(function* () {
  const log = yield* Log
  for (let before = -1; before !== (yield* log.head("")); ) {
    before = yield* log.head("")
    for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
  }
})

export const pass = (duration: Duration.Input) =>
  Effect.andThen(TestClock.adjust(duration), settled)

let sent = 0

/** Sends a batch with the clock's current time. */
export const ask = Effect.fnUntraced(function* (...batch: Batch) {
  const { send } = yield* Commands
  const now = new Date(yield* Clock.currentTimeMillis).toISOString()
  yield* send({ command_id: `asked-${++sent}`, actor: "test", at: now }, ...batch)
  yield* settled
})

/** Runs a process in the background until it is interrupted. */
export const begin = <E = never, R = never>(process: Process | Effect.Effect<Process, E, R>) =>
  Effect.gen(function* () {
    const made = Effect.isEffect(process) ? yield* process : process
    const fiber = yield* Effect.forkScoped(runProcess(made))
    yield* settled
    return fiber
  })

/** An event with all its fields. */
interface Told {
  readonly type: string
  readonly [field: string]: unknown
}

/** The events of the aggregates of a noun, with their time in seconds after noon. */
export const happenings = Effect.fnUntraced(function* (noun: string) {
  const commits = yield* Stream.runCollect((yield* Log).read(`share-protection.${noun}`))
  return commits.flatMap(({ stream, commit }) =>
    commit.events.map((event) => ({
      seconds: (Date.parse(commit.at) - noon) / 1000,
      id: stream.split(".")[2] ?? "",
      // Tests read fields that an event of its type has.
      event: event as Told,
    })),
  )
})

/** The event types of the aggregates of a noun, in order. */
export const types = (noun: string) =>
  Effect.map(happenings(noun), (all) => all.map(({ event }) => event.type))

/** The times of all events of that type, in seconds after noon. */
export const secondsOf = (noun: string, type: string) =>
  Effect.map(happenings(noun), (all) =>
    all.flatMap(({ seconds, event }) => (event.type === type ? seconds : [])),
  )

/** An agent as the conductor sees it: the requests it received, and how it responds. */
export interface Listener {
  readonly offered: Array<JobOrder>
  readonly cancelled: Array<readonly [string, number]>
  /** How the agent responds to orders. */
  offer: "takes" | "refuses" | "is silent"
  /** Whether the agent has the job that a cancellation names. */
  has_it: boolean | "is silent"
}

/** A ready worker with an agent that listens. */
export const ready = Effect.fnUntraced(function* (worker_id: WorkerId, capacity_slots = 2) {
  const listener = yield* listening(worker_id)
  const words = { hostname: "host-1", image_version: "image-1", engine_version: "0.18.0" }
  const registration = { ...words, project_id, domain_id, capacity_slots }
  yield* ask(address(Worker, worker_id, RegisterWorker.make(registration)))
  return listener
})

export const listening = Effect.fnUntraced(function* (worker_id: WorkerId) {
  const listener: Listener = { offered: [], cancelled: [], offer: "takes", has_it: false }
  const agent: Agent = {
    offer: (order) =>
      Effect.suspend(() => {
        listener.offered.push(order)
        if (listener.offer === "takes") return Effect.void
        if (listener.offer === "is silent") return Effect.never
        return Effect.fail(new WorkerUnavailable({ detail: "No." }))
      }),
    cancel: (job_id, fence) =>
      Effect.suspend(() => {
        listener.cancelled.push([job_id, fence])
        const { has_it } = listener
        return has_it === "is silent" ? Effect.never : Effect.succeed(has_it)
      }),
  }
  yield* (yield* Agents).attach(worker_id, agent)
  return listener
})
