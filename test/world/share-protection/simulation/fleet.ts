/**
 * The machines of a simulation: those that a compute service boots, and those that already exist.
 * They die, stop, become unreachable for a while, and return with another id.
 */
import { Effect, FileSystem, Layer, Redacted } from "effect"
import { Commands } from "#actors/commands.ts"
import { type AgentOptions, startAgent } from "#actors/share-protection/agent.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { Buckets } from "#actors/share-protection/ports/buckets.ts"
import type { Boot, Compute } from "#actors/share-protection/ports/compute.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { BackendUnavailable, WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { beatsFrom, commandsFrom } from "./bus.ts"
import { bucketsOf, engineOf, sharesOf, trustsOf, vaultOf } from "./engine.ts"
import { happens, kill, type Machine, pause, type World } from "./world.ts"

const second_ms = 1_000
const minute_ms = 60_000

export interface FleetPlan {
  readonly heartbeat_interval_seconds: number
  readonly max_command_duration_seconds: number
  readonly capacity_slots: number
}

/** The state that all machines of a world share. */
export interface Yard {
  readonly world: World
  readonly plan: FleetPlan
  readonly commands: Commands["Service"]
  readonly agents: Agents["Service"]
}

const optionsOf = (plan: FleetPlan, boot: Boot): AgentOptions => ({
  worker_id: boot.worker_id,
  registration: {
    project_id: boot.project_id,
    domain_id: boot.domain_id,
    hostname: boot.worker_id,
    image_version: boot.image,
    capacity_slots: plan.capacity_slots,
  },
  heartbeat_interval_seconds: plan.heartbeat_interval_seconds,
  max_command_duration_seconds: plan.max_command_duration_seconds,
  subprocess_timeout_seconds: plan.max_command_duration_seconds / 2,
  shape: "A",
  require_fips_profile: false,
  new_password: Effect.succeed(Redacted.make("password")),
  scratch_dir: "/scratch",
})

const portsOf = ({ world, commands, agents }: Yard, machine: Machine) =>
  Layer.mergeAll(
    Layer.succeed(Commands, commandsFrom(world, machine, commands)),
    Layer.succeed(LiveWorkers, beatsFrom(world, machine)),
    Layer.succeed(Agents, agents),
    Layer.succeed(Engine, engineOf(world, machine)),
    Layer.succeed(Buckets, bucketsOf(world, machine)),
    Layer.succeed(Trusts, trustsOf(world, machine)),
    Layer.succeed(Vault, vaultOf(world, machine)),
    Layer.succeed(Shares, sharesOf(world, machine)),
    FileSystem.layerNoop({
      makeDirectory: () => Effect.void,
      makeTempDirectoryScoped: () => Effect.succeed("/scratch/test"),
    }),
  )

/** The life of a machine from power-on until its agent is dismissed. */
const life = (yard: Yard, boot: Boot, is_anew = false) =>
  Effect.gen(function* () {
    const { world, plan } = yard
    const { worker_id } = boot
    const machine: Machine = { worker_id, is_alive: true, is_anew, cut_until: 0 }
    world.machines.set(boot.worker_id, machine)
    const served = Effect.gen(function* () {
      const agent = yield* startAgent(optionsOf(plan, boot))
      yield* Effect.raceFirst(Effect.asVoid(agent.dismissed), fate(world, machine))
    })
    yield* Effect.ignore(Effect.scoped(Effect.provide(served, portsOf(yard, machine))))
    kill(world, machine)
  })

/** Ends when the machine stops gracefully; a machine that dies never reports it. */
const fate = (world: World, machine: Machine) =>
  Effect.gen(function* () {
    while (true) {
      yield* pause(world, 10 * second_ms, minute_ms)
      if (happens(world, "a worker dies", 0.05)) {
        kill(world, machine)
        return yield* Effect.never
      }
      if (happens(world, "a worker is cut off", 0.05)) {
        machine.cut_until = world.time.now() + world.random.between(second_ms, 8 * minute_ms)
      }
      if (happens(world, "a worker is stopped", 0.03)) return
    }
  })

/**
 * A machine that the fleet manager does not boot. After it dies, its agent returns with another id
 * or, before its absence is detected, with the same id.
 */
export const standing = (yard: Yard, boot: Boot): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { world } = yard
    for (let round = 1; ; round++) {
      const worker_id = WorkerId.make(`${boot.worker_id}-${round}`)
      const isGone = () => world.machines.get(worker_id)?.is_alive === false
      yield* Effect.forkDetach(life(yard, { ...boot, worker_id }))
      while (!isGone()) yield* Effect.sleep(minute_ms)
      if (happens(world, "an agent restarts", 0.5)) {
        yield* Effect.forkDetach(life(yard, { ...boot, worker_id }, true))
        yield* Effect.sleep(minute_ms)
        while (!isGone()) yield* Effect.sleep(minute_ms)
      }
      yield* pause(world, second_ms, 5 * minute_ms)
    }
  })

/** A compute service whose machines boot slowly or never. */
export const computeOf = (yard: Yard): Compute["Service"] => {
  const { world } = yard
  const booted = new Map<string, "booting" | "active">()
  const reached = Effect.suspend(() =>
    happens(world, "the compute service is down", 0.05)
      ? Effect.fail(new BackendUnavailable({ detail: "down" }))
      : Effect.void,
  )
  return {
    image: (name) =>
      Effect.as(reached, { name, properties: { svc_worker_image: true, engine_version: null } }),
    boot: (boot) =>
      Effect.gen(function* () {
        yield* reached
        if (booted.has(boot.worker_id)) return
        if (happens(world, "there is no room", 0.1)) {
          return yield* new WorkerUnavailable({ detail: "no room" })
        }
        booted.set(boot.worker_id, "booting")
        const comes = !happens(world, "a machine does not come up", 0.15)
        const up = Effect.gen(function* () {
          yield* pause(world, 10 * second_ms, 3 * minute_ms)
          if (!comes || !booted.has(boot.worker_id)) return
          booted.set(boot.worker_id, "active")
          yield* life(yard, boot)
        })
        yield* Effect.forkDetach(up)
      }),
    destroy: (worker_id) =>
      Effect.map(reached, () => {
        booted.delete(worker_id)
        const machine = world.machines.get(worker_id)
        if (machine !== undefined) kill(world, machine)
      }),
    find: (worker_id) => Effect.map(reached, () => booted.get(worker_id) ?? "gone"),
  }
}
