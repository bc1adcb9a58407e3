/**
 * The simulation: a deployment that goes through an hour or more of faults, and then a quiet phase
 * in which all work must end. The deciders, the command host, the conductor and the agents are
 * real; their environment is drawn from a seed, which reproduces a run exactly.
 */
import { Cause, Context, Effect, Exit, Fiber, Layer, Logger, References, Schedule } from "effect"
import { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { type ConductorOptions, conductor } from "#actors/share-protection/processes/conductor.ts"
import { orphanSweep } from "#actors/share-protection/processes/orphan-sweep.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { DomainId, WorkerId } from "#schemas/share-protection/id.ts"
import { beats, frailAgents, frailCommands, frailLog } from "./bus.ts"
import { computeOf, standing, type Yard } from "./fleet.ts"
import { unsettled } from "./laws.ts"
import { limits, quieten, tenants, worker_project_id } from "./tenants.ts"
import { count, happens, law, makeWorld, pause, story, type World } from "./world.ts"

const second_ms = 1_000
const minute_ms = 60_000

/** Duration of the fault phase, and maximum duration of the quiet phase, in minutes. */
const faults_minutes = 10
const quiet_minutes_max = 360

/** Number of writes reported for a run that broke a law. */
const story_lines_max = 12

const queued_job_deadline_seconds = 300
const min_workers = 1

const timing = {
  worker_heartbeat_deadline_seconds: 180,
  command_timeout_seconds: 30,
  max_command_duration_seconds: 1800,
  worker_boot_max_failures: 3,
  worker_boot_failure_window_seconds: 1200,
}

const optionsOf = (yard: Yard, sweep: Effect.Success<ReturnType<typeof orphanSweep>>) =>
  ({
    scheduling: { scheduler_interval_seconds: 60, schedule_jitter_seconds: 30, quotas: limits },
    dispatch: { ...timing, queued_job_deadline_seconds },
    fleet: {
      ...timing,
      project_id: worker_project_id,
      min_workers,
      max_workers: 3,
      worker_boot_cooldown_seconds: 60,
      worker_boot_grace_seconds: 300,
      worker_boot_image: "image-1",
    },
    upkeep: { maintenance_interval_seconds: 3600, restore_test_interval_seconds: 900 },
    reconciling: {
      reconciliation_interval_seconds: () => 600,
      loops: { orphan_sweep: sweep },
    },
    machines: computeOf(yard),
  }) satisfies ConductorOptions

/** Conductors in sequence; sometimes the next one starts before the previous one ends. */
const conductors = (world: World, options: ConductorOptions) =>
  Effect.gen(function* () {
    const begin = Effect.forkDetach(
      Effect.onExit(conductor(options), (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return
          law(world)(false, `a conductor fails: ${Cause.pretty(exit.cause)}`)
        }),
      ),
    )
    let present = yield* begin
    while (true) {
      yield* pause(world, second_ms, 5 * minute_ms)
      if (!happens(world, "a conductor is killed", 0.5)) continue
      const before = present
      if (happens(world, "two conductors at once", 0.3)) {
        present = yield* begin
        yield* pause(world, 1, 30 * second_ms)
        yield* Fiber.interrupt(before)
      } else {
        yield* Fiber.interrupt(before)
        yield* pause(world, 1, 2 * minute_ms)
        present = yield* begin
      }
    }
  })

/** Sets the clock slightly back or far ahead. */
const clockSetter = (world: World) =>
  Effect.gen(function* () {
    while (true) {
      yield* pause(world, minute_ms, 10 * minute_ms)
      if (happens(world, "the clock is set", 0.1)) {
        world.time.jump(world.random.between(-30 * second_ms, 10 * minute_ms))
      }
    }
  })

const running = (world: World) =>
  Effect.gen(function* () {
    const log = frailLog(world, yield* Log)
    // Two hosts of aggregates, so that each sometimes lags behind the other.
    const hosting = Layer.build(Layer.fresh(host)).pipe(
      Effect.provideService(Log, log),
      Effect.map((built) => frailCommands(world, Context.get(built, Commands))),
    )
    const commands = yield* hosting
    const agents = frailAgents(world, timing.command_timeout_seconds)
    const plan = {
      heartbeat_interval_seconds: timing.worker_heartbeat_deadline_seconds / 3,
      max_command_duration_seconds: timing.max_command_duration_seconds,
      capacity_slots: world.random.between(1, 3),
    }
    const yard: Yard = { world, plan, agents, commands: yield* hosting }
    const services = Layer.mergeAll(
      Layer.succeed(Log, log),
      Layer.succeed(Commands, commands),
      Layer.succeed(Agents, agents),
      Layer.succeed(LiveWorkers, beats(world)),
    )
    const sweep = yield* Effect.provideService(orphanSweep(queued_job_deadline_seconds), Log, log)
    yield* Effect.forkDetach(Effect.provide(conductors(world, optionsOf(yard, sweep)), services))
    for (const [name, domain] of [
      ["stands", null],
      ["canary", "canary"],
    ] as const) {
      const boot = {
        worker_id: WorkerId.make(name),
        image: "image-1",
        project_id: worker_project_id,
      }
      const domain_id = domain === null ? null : DomainId.make(domain)
      yield* Effect.forkDetach(standing(yard, { ...boot, domain_id }))
    }
    yield* Effect.forkDetach(clockSetter(world))
    const asking = yield* Effect.forkDetach(tenants(world, commands))
    yield* Effect.sleep(faults_minutes * minute_ms)

    world.is_calm = true
    for (const machine of world.machines.values()) machine.cut_until = 0
    yield* Fiber.interrupt(asking)
    // Repeated, because a late request may resume the schedule.
    yield* Effect.forkDetach(Effect.repeat(quieten(world, commands), Schedule.spaced(minute_ms)))
  })

/** Waits until no work remains; returns the remaining work if that takes too long. */
const quiet = (world: World) =>
  Effect.gen(function* () {
    let left = unsettled(world.records, min_workers)
    for (let minutes = 0; minutes < quiet_minutes_max && left.length > 0; minutes++) {
      yield* Effect.sleep(minute_ms)
      left = unsettled(world.records, min_workers)
      count(world, "a quiet minute")
    }
    return left
  })

export interface Outcome {
  readonly seed: number
  /** The failure; undefined if there was none. */
  readonly broken: string | undefined
  /** Number of occurrences of each fault and each event. */
  readonly tally: ReadonlyMap<string, number>
  /** Equal for identical runs. */
  readonly fingerprint: string
  /** The most recent writes. */
  readonly story: ReadonlyArray<string>
}

/** The broken law, and the writes that led to it. */
export const tellBroken = ({ seed, broken, story }: Outcome) =>
  [
    ...story.slice(-story_lines_max),
    `seed ${seed}: ${broken}`,
    `repeat it: npm run soak -- --only simulation --seed ${seed}`,
  ].join("\n")

/** Simulates one run. */
export const simulate = (seed: number): Outcome => {
  const world = makeWorld(seed)
  let is_done = false
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Error" || logLevel === "Fatal") law(world)(false, `logged: ${message}`)
  })
  const main = Effect.gen(function* () {
    yield* running(world)
    const left = yield* quiet(world)
    law(world)(left.length === 0, `still not quiet: ${left.join(", ")}`)
  }).pipe(
    Effect.onExit((exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit)) law(world)(false, Cause.pretty(exit.cause))
        is_done = true
      }),
    ),
    Effect.scoped,
    Effect.provide(Layer.mergeAll(Layer.fresh(logMemory), Logger.layer([logger]))),
    Effect.provideService(References.MinimumLogLevel, "Error"),
  )
  world.time.fork(main, Context.empty())
  world.time.run(() => is_done || world.broken !== undefined)
  const { broken, tally, chain } = world
  return { seed, broken, tally, story: story(world), fingerprint: chain.digest("hex") }
}
