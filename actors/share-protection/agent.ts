/**
 * An agent: makes a machine a worker. It registers, beats, takes the orders that it has slots for,
 * and runs each job.
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
} from "#actors/share-protection/jobs/run.ts"
import { type Agent, Agents } from "#actors/share-protection/ports/agents.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { spanned } from "#events/trace.ts"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { type Rejection, WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"

/** Pause between two tries to register, in milliseconds: the log may be starting too. */
const register_retry_ms = 500

/**
 * Heartbeats without an answer after which an agent stops by itself: by then it may be taken for
 * dead, and a deadline later what it holds is another's.
 */
const unanswered_max = 3

const no_answer = new Unavailable({ detail: "No answer came." })
const cut_off = new WorkerUnavailable({ detail: "Nobody answers the worker any more." })

/** What runs has so long to stop and to report, in seconds: a server has 10 in all to end. */
const stop_timeout_s = 6

export interface AgentOptions extends RunOptions {
  readonly worker_id: WorkerId
  /** What it tells of itself; the engine's version is the engine's to tell. */
  readonly registration: Omit<typeof RegisterWorker.Type, "type" | "engine_version">
  /** A third of conductor.worker_heartbeat_deadline_seconds, or less. */
  readonly heartbeat_interval_seconds: number
}

/** An agent that runs. */
export interface RunningAgent extends Agent {
  /** From here it takes no order; answers when nothing runs any more. */
  readonly drain: Effect.Effect<void>
  /**
   * Why it is no worker any more: it was declared dead, is retired, or is cut off. All it ran is
   * stopped.
   */
  readonly dismissed: Effect.Effect<Rejection>
}

/**
 * Registers the worker, and serves it for as long as the scope lasts. Fails when the worker is
 * refused: its id was used up. When the scope ends, what runs is stopped and reported.
 */
export const startAgent = Effect.fnUntraced(function* (options: AgentOptions) {
  const register = yield* registering(options)
  const dismissal = yield* Deferred.make<Rejection>()
  const { hand, ...agent } = yield* serving(options)
  // Before it is known, so that the first order finds it.
  yield* (yield* Agents).attach(options.worker_id, agent)
  yield* register.pipe(
    Effect.tapError(({ detail }) => Effect.logWarning(`The worker waits: ${detail}`)),
    Effect.retry({
      while: (failure) => failure instanceof Unavailable,
      schedule: Schedule.spaced(register_retry_ms),
    }),
  )
  const beat = yield* beating(options, hand)
  const interval = Duration.seconds(options.heartbeat_interval_seconds)
  let unanswered = 0
  const ask = beat.pipe(
    Effect.andThen(register),
    // Ended by a defect it would beat no more, and what it runs would go on as another's.
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("A heartbeat of the worker broke.", defect),
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
      const why = failure instanceof Unavailable ? cut_off : failure
      for (const { run } of hand.slots.values()) run.is_dismissed = true
      return Effect.andThen(Deferred.succeed(dismissal, why), stopAll(hand))
    }),
  )
  yield* Effect.forkScoped(Effect.repeat(ask, Schedule.fixed(interval)))
  return { ...agent, dismissed: Deferred.await(dismissal) } satisfies RunningAgent
})

/** Says who the worker is. Again it is without effect, and refused when it is one no more. */
const registering = Effect.fnUntraced(function* ({ worker_id, registration }: AgentOptions) {
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

/** What an agent has in hand. */
interface Hand {
  readonly slots: Map<JobId, Slot>
  is_draining: boolean
  is_stopping: boolean
  is_given_up: boolean
}

/** Tells that the worker lives, and how far its jobs are. */
const beating = Effect.fnUntraced(function* ({ worker_id }: AgentOptions, { slots }: Hand) {
  const live = yield* LiveWorkers
  return Effect.suspend(() =>
    live.beat({ worker_id, jobs: [...slots.values()].map(({ run }) => run.last_progress) }),
  )
})

/** Takes orders, and stops what runs when the scope ends. */
const serving = Effect.fnUntraced(function* (options: AgentOptions) {
  const services = yield* Effect.context<RunServices>()
  const hand: Hand = {
    slots: new Map(),
    is_draining: false,
    is_stopping: false,
    is_given_up: false,
  }
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      stopAll(hand),
      Effect.sync(() => {
        hand.is_given_up = true
      }),
    ),
  )
  const agent: Agent = {
    offer: (order) =>
      Effect.suspend(() => {
        if (hand.slots.get(order.job_id)?.run.order.fence === order.fence) return Effect.void
        const detail = whyNot(hand, order, options)
        if (detail !== undefined) return Effect.fail(new WorkerUnavailable({ detail }))
        return Effect.provideContext(begin(hand, order, options), services)
      }).pipe(Effect.uninterruptible),
    cancel: (job_id, fence) =>
      Effect.sync(() => {
        const slot = hand.slots.get(job_id)
        if (slot?.run.order.fence !== fence) return false
        slot.run.is_cancelled = true
        slot.fiber?.interruptUnsafe()
        return true
      }),
  }
  const drain = Effect.suspend(() => {
    hand.is_draining = true
    return allEnded(hand)
  })
  return { ...agent, hand, drain }
})

const whyNot = (
  { is_draining, slots }: Hand,
  { job_id, worker_id }: JobOrder,
  { registration: { capacity_slots }, ...own }: AgentOptions,
) => {
  if (worker_id !== own.worker_id) return `The order is worker ${worker_id}'s.`
  if (slots.has(job_id)) return "The worker has not ended an earlier run of that job."
  if (is_draining) return "The worker takes no job any more."
  return slots.size >= capacity_slots ? `All ${capacity_slots} slots are busy.` : undefined
}

/** Runs the job beside what else runs. Its slot is taken at once, and free when all is told. */
const begin = (hand: Hand, order: JobOrder, options: AgentOptions) => {
  const run = newRun(order, () => hand.is_given_up)
  const slot: Slot = { run }
  hand.slots.set(order.job_id, slot)
  const running = runJob(run, options).pipe(
    Effect.annotateLogs({ job_id: order.job_id }),
    spanned(`job ${order.job_type}`, {
      kind: "consumer",
      attributes: () => ({ "almanac.job_id": order.job_id, "almanac.attempt": order.attempt }),
    }),
    Effect.ensuring(Effect.sync(() => hand.slots.delete(order.job_id))),
  )
  return Effect.map(Effect.forkDetach(running, { uninterruptible: true }), (fiber) => {
    slot.fiber = fiber
    // Asked for while there was nothing to stop yet.
    if (hand.is_stopping || run.is_cancelled) fiber.interruptUnsafe()
  })
}

const allEnded = ({ slots }: Hand) =>
  Effect.suspend(() =>
    Effect.forEach(
      [...slots.values()],
      ({ fiber }) => (fiber === undefined ? Effect.void : Fiber.await(fiber)),
      { discard: true },
    ),
  )

/** Stops what runs; answers when all of it is told, or when its time is over. */
const stopAll = (hand: Hand) =>
  Effect.suspend(() => {
    hand.is_draining = true
    hand.is_stopping = true
    for (const { fiber } of hand.slots.values()) fiber?.interruptUnsafe()
    return Effect.timeoutOption(allEnded(hand), Duration.seconds(stop_timeout_s))
  })
