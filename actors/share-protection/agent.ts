/**
 * An agent turns a machine into a worker: it registers, sends heartbeats, accepts orders while it
 * has free slots, and runs each job.
 *
 * Source: document 2 §1, §3 Worker, §8 worker.*; DECISIONS, document 2, workers, cancel.
 */
import { Clock, DateTime, Deferred, Duration, Effect, Fiber, Schedule } from "effect"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import {
  newRun,
  type Run,
  type RunOptions,
  type RunServices,
  runJob,
} from "#actors/share-protection/jobs/runner.ts"
import { type Agent, Agents } from "#actors/share-protection/ports/agents.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { spanned } from "#events/trace.ts"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { type Rejection, WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"

/** Pause between attempts to register, in milliseconds: the log may still be starting. */
const register_retry_ms = 500

/**
 * An agent stops itself after this many heartbeats without a response: by then it may be declared
 * dead, and one deadline later another worker may own what it holds.
 */
const unanswered_max = 3

const no_answer = new Unavailable({ detail: "No response arrived." })
const cut_off = new WorkerUnavailable({ detail: "The server no longer responds to the worker." })

/** Time for runs to stop and report, in seconds: a server has 10 s in total to shut down. */
const stop_timeout_s = 6

export interface AgentOptions extends RunOptions {
  readonly worker_id: WorkerId
  /** The registration without the engine's version, which the engine reports. */
  readonly registration: Omit<typeof RegisterWorker.Type, "type" | "engine_version">
  /** A third of conductor.worker_heartbeat_deadline_seconds, or less. */
  readonly heartbeat_interval_seconds: number
}

/** A running agent. */
export interface RunningAgent extends Agent {
  /** Stops accepting orders; completes when all runs have ended. */
  readonly drain: Effect.Effect<void>
  /**
   * Completes with the reason when the worker was declared dead, was retired, or is cut off. All
   * its runs are stopped.
   */
  readonly dismissed: Effect.Effect<Rejection>
}

/**
 * Registers the worker and serves it until the scope ends. Fails if the registration is rejected
 * because the id belongs to a dead or retired worker. When the scope ends, stops all runs and
 * reports them.
 */
export const startAgent = Effect.fnUntraced(function* (options: AgentOptions) {
  const register = yield* makeRegister(options)
  const dismissal = yield* Deferred.make<Rejection>()
  const { state, ...agent } = yield* serve(options)
  // Attached before it registers, so that it receives its first order.
  yield* (yield* Agents).attach(options.worker_id, agent)
  yield* register.pipe(
    Effect.tapError(({ detail }) => Effect.logWarning(`The worker is waiting: ${detail}`)),
    Effect.retry({
      while: (failure) => failure instanceof Unavailable,
      schedule: Schedule.spaced(register_retry_ms),
    }),
  )
  const publishHeartbeat = yield* makeHeartbeat(options, state)
  const interval = Duration.seconds(options.heartbeat_interval_seconds)
  let unanswered = 0
  const heartbeat = publishHeartbeat.pipe(
    Effect.andThen(register),
    // A defect must not end the heartbeats silently: the runs would outlive the worker's deadline.
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("A heartbeat of the worker failed.", defect),
        Effect.fail(no_answer),
      ),
    ),
    Effect.timeoutOrElse({ duration: interval, orElse: () => Effect.fail(no_answer) }),
    Effect.tap(() =>
      Effect.sync(() => {
        unanswered = 0
      }),
    ),
    Effect.catch((failure) => {
      if (failure instanceof Unavailable && ++unanswered < unanswered_max) return Effect.void
      const reason = failure instanceof Unavailable ? cut_off : failure
      for (const { run } of state.slots.values()) run.is_dismissed = true
      return Effect.andThen(Deferred.succeed(dismissal, reason), stopAll(state))
    }),
  )
  yield* Effect.forkScoped(Effect.repeat(heartbeat, Schedule.fixed(interval)))
  return { ...agent, dismissed: Deferred.await(dismissal) } satisfies RunningAgent
})

/** Registers the worker. Idempotent; rejected once the worker is dead or retired. */
const makeRegister = Effect.fnUntraced(function* ({ worker_id, registration }: AgentOptions) {
  const { send } = yield* Commands
  const { version } = yield* Engine
  const command = RegisterWorker.make({ ...registration, engine_version: version })
  return Effect.gen(function* () {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const origin = { command_id: `register-${worker_id}-${at}`, actor: `worker:${worker_id}`, at }
    return yield* send(origin, address(Worker, worker_id, command))
  })
})

interface Slot {
  readonly run: Run
  fiber?: Fiber.Fiber<void>
}

/** An agent's runs, and whether it is stopping. */
interface AgentState {
  readonly slots: Map<JobId, Slot>
  is_draining: boolean
  is_stopping: boolean
  is_given_up: boolean
}

/** Publishes a heartbeat with the progress of all runs. */
const makeHeartbeat = Effect.fnUntraced(function* (
  { worker_id }: AgentOptions,
  { slots }: AgentState,
) {
  const live = yield* LiveWorkers
  return Effect.suspend(() =>
    live.publish({ worker_id, jobs: [...slots.values()].map(({ run }) => run.last_progress) }),
  )
})

/** Accepts orders, and stops all runs when the scope ends. */
const serve = Effect.fnUntraced(function* (options: AgentOptions) {
  const services = yield* Effect.context<RunServices>()
  const state: AgentState = {
    slots: new Map(),
    is_draining: false,
    is_stopping: false,
    is_given_up: false,
  }
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      stopAll(state),
      Effect.sync(() => {
        state.is_given_up = true
      }),
    ),
  )
  const agent: Agent = {
    offer: (order) =>
      Effect.suspend(() => {
        if (state.slots.get(order.job_id)?.run.order.fence === order.fence) return Effect.void
        const detail = refusalOf(state, order, options)
        if (detail !== undefined) return Effect.fail(new WorkerUnavailable({ detail }))
        return Effect.provideContext(startRun(state, order, options), services)
      }).pipe(Effect.uninterruptible),
    cancel: (job_id, fence) =>
      Effect.sync(() => {
        const slot = state.slots.get(job_id)
        if (slot?.run.order.fence !== fence) return false
        slot.run.is_cancelled = true
        slot.fiber?.interruptUnsafe()
        return true
      }),
  }
  const drain = Effect.suspend(() => {
    state.is_draining = true
    return allEnded(state)
  })
  return { ...agent, state, drain }
})

const refusalOf = (
  { is_draining, slots }: AgentState,
  { job_id, worker_id }: JobOrder,
  { registration: { capacity_slots }, ...own }: AgentOptions,
) => {
  if (worker_id !== own.worker_id) return `The job command is for worker ${worker_id}.`
  if (slots.has(job_id)) return "The worker has not finished an earlier run of this job."
  if (is_draining) return "The worker accepts no more jobs."
  return slots.size >= capacity_slots ? `All ${capacity_slots} slots are busy.` : undefined
}

/** Starts a run in the background. It takes its slot at once and frees it after its report. */
const startRun = (state: AgentState, order: JobOrder, options: AgentOptions) => {
  const run = newRun(order, () => state.is_given_up)
  const slot: Slot = { run }
  state.slots.set(order.job_id, slot)
  const running = runJob(run, options).pipe(
    Effect.annotateLogs({ job_id: order.job_id }),
    spanned(`job ${order.job_type}`, {
      kind: "consumer",
      attributes: () => ({ "almanac.job_id": order.job_id, "almanac.attempt": order.attempt }),
    }),
    Effect.ensuring(Effect.sync(() => state.slots.delete(order.job_id))),
  )
  return Effect.map(Effect.forkDetach(running, { uninterruptible: true }), (fiber) => {
    slot.fiber = fiber
    // The stop or the cancellation came before the fiber existed.
    if (state.is_stopping || run.is_cancelled) fiber.interruptUnsafe()
  })
}

const allEnded = ({ slots }: AgentState) =>
  Effect.suspend(() =>
    Effect.forEach(
      [...slots.values()],
      ({ fiber }) => (fiber === undefined ? Effect.void : Fiber.await(fiber)),
      { discard: true },
    ),
  )

/** Stops all runs; completes when they have reported, or after the time limit. */
const stopAll = (state: AgentState) =>
  Effect.suspend(() => {
    state.is_draining = true
    state.is_stopping = true
    for (const { fiber } of state.slots.values()) fiber?.interruptUnsafe()
    return Effect.timeoutOption(allEnded(state), Duration.seconds(stop_timeout_s))
  })
