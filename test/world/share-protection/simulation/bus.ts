/** The bus of a simulation: it drops, delays and repeats messages. */
import { Duration, Effect, Stream } from "effect"
import { type Commands, Unavailable } from "#actors/commands.ts"
import type { Agents } from "#actors/share-protection/ports/agents.ts"
import type { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { type Log, LogUnavailable, OutcomeUnknown } from "#events/log.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { happens, isCut, type Machine, onMachine, pause, type World, witness } from "./world.ts"

/** Maximum delay of a message, in milliseconds. */
const late_ms_max = 20_000

/** A log that reports writes to the witness; it may be unreachable, and its events may be late. */
export const frailLog = (world: World, log: Log["Service"]): Log["Service"] => ({
  ...log,
  append: (appends) =>
    Effect.suspend(() => {
      if (happens(world, "the log is out of reach", 0.005)) {
        return Effect.fail(new LogUnavailable({ detail: "out of reach" }))
      }
      return Effect.flatMap(log.append(appends), (appended) => {
        const batch = appends.map(({ stream, commit }, index) => {
          const { position = 0, hash = "" } = appended[index] ?? {}
          return { stream, commit, position, hash }
        })
        witness(world, batch)
        return happens(world, "an append's answer is lost", 0.005)
          ? Effect.fail(new OutcomeUnknown({ detail: "no answer" }))
          : Effect.succeed(appended)
      })
    }),
  follow: (part, position) =>
    log
      .follow(part, position)
      .pipe(
        Stream.mapEffect((recorded) =>
          happens(world, "news are late", 0.02)
            ? Effect.as(pause(world, 1, 5_000), recorded)
            : Effect.succeed(recorded),
        ),
      ),
})

const lost = new Unavailable({ detail: "lost" })

/** Commands over a bus that loses them or their responses, and delivers some twice. */
export const frailCommands = (
  world: World,
  { send }: Commands["Service"],
): Commands["Service"] => ({
  send: (origin, ...commands) =>
    Effect.gen(function* () {
      if (happens(world, "a command is late", 0.05)) yield* pause(world, 1, late_ms_max)
      if (happens(world, "a command is lost", 0.02)) return yield* lost
      if (happens(world, "a command comes twice", 0.03)) {
        const again = Effect.andThen(pause(world, 1, late_ms_max), send(origin, ...commands))
        yield* Effect.forkDetach(Effect.ignore(again))
      }
      const position = yield* send(origin, ...commands)
      if (happens(world, "an answer is lost", 0.02)) return yield* lost
      return position
    }),
})

/** Commands from a machine, while it is alive and reachable. */
export const commandsFrom = (
  world: World,
  machine: Machine,
  { send }: Commands["Service"],
): Commands["Service"] => ({
  send: (origin, ...commands) =>
    onMachine(
      machine,
      Effect.suspend(() =>
        isCut(world, machine)
          ? Effect.andThen(pause(world, 1_000, 5_000), Effect.fail(lost))
          : Effect.tap(send(origin, ...commands), () => onMachine(machine, Effect.void)),
      ),
    ),
})

/** Orders that may be lost, arrive twice, or be accepted without a response. */
export const frailAgents = (world: World, command_timeout_seconds: number): Agents["Service"] => {
  const asking = <A>(
    worker_id: string,
    ask: Effect.Effect<A, WorkerUnavailable>,
  ): Effect.Effect<A, WorkerUnavailable> =>
    Effect.gen(function* () {
      yield* pause(world, 1, 200)
      const machine = world.machines.get(worker_id)
      const is_lost = machine === undefined || isCut(world, machine)
      if (is_lost || happens(world, "an order is lost", 0.05)) return yield* Effect.never
      if (happens(world, "an order comes twice", 0.05)) {
        const again = Effect.andThen(pause(world, 1, late_ms_max), ask)
        yield* Effect.forkDetach(Effect.ignore(again))
      }
      const answer = yield* Effect.result(ask)
      if (happens(world, "an order's answer is lost", 0.05)) return yield* Effect.never
      return yield* Effect.fromResult(answer)
    }).pipe(
      Effect.timeoutOrElse({
        duration: Duration.seconds(command_timeout_seconds),
        orElse: () => Effect.fail(new WorkerUnavailable({ detail: "No answer." })),
      }),
    )
  /** The agent that listens on arrival, if any; a dead agent no longer listens. */
  const heardBy = <A>(
    worker_id: string,
    ask: (
      agent: NonNullable<ReturnType<World["agents"]["get"]>>,
    ) => Effect.Effect<A, WorkerUnavailable>,
  ) =>
    Effect.suspend(() => {
      const agent = world.agents.get(worker_id)
      return agent === undefined ? Effect.never : ask(agent)
    })
  return {
    offer: (worker_id, order) =>
      asking(
        worker_id,
        heardBy(worker_id, ({ offer }) => offer(order)),
      ),
    cancel: (worker_id, job_id, fence) =>
      asking(
        worker_id,
        heardBy(worker_id, ({ cancel }) => cancel(job_id, fence)),
      ),
    attach: (worker_id, agent) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => world.agents.set(worker_id, agent)),
          () =>
            Effect.sync(() => {
              // Another agent may have taken its place.
              if (world.agents.get(worker_id) === agent) world.agents.delete(worker_id)
            }),
        ),
      ),
  }
}

/** Heartbeats of a machine; heartbeats of an unreachable machine are lost. */
export const beatsFrom = (world: World, machine: Machine): LiveWorkers["Service"] => ({
  ...beats(world),
  publish: (message) =>
    Effect.suspend(() =>
      isCut(world, machine) || happens(world, "a heartbeat is lost", 0.02)
        ? Effect.void
        : world.heard.record(message),
    ),
})

export const beats = ({ heard }: World): LiveWorkers["Service"] => ({
  publish: heard.record,
  find: heard.find,
  progressOf: heard.progressOf,
})
