/**
 * A fleet for tests of the fleet manager: machines that boot, register and send heartbeats in
 * memory.
 */
import { Context, Effect, Layer, Schedule } from "effect"
import { address, type Commands } from "#actors/commands.ts"
import { fleetManager } from "#actors/share-protection/fleet/manager.ts"
import type { FleetOptions } from "#actors/share-protection/fleet/options.ts"
import { type Boot, Compute } from "#actors/share-protection/ports/compute.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import type { Log } from "#events/log.ts"
import { type DomainId, WorkerId } from "#schemas/share-protection/id.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"
import { ask, begin, happenings } from "./conducted.ts"
import { computeMemory, type MachineRoom, machineRoom } from "./memory/compute.ts"
import { project_id } from "./samples.ts"

const fleet_options: FleetOptions = {
  project_id,
  worker_heartbeat_deadline_seconds: 60,
  worker_boot_cooldown_seconds: 180,
  worker_boot_grace_seconds: 1200,
  worker_boot_max_failures: 3,
  worker_boot_failure_window_seconds: 7200,
  min_workers: 0,
  max_workers: 10,
  worker_boot_image: "image-1",
}

const imageOf = (name: string) => ({
  name,
  properties: { svc_worker_image: true, engine_version: "0.18.0" },
})

/** The registration fields that an agent reports. */
export const wordsOf = ({ image, project_id, domain_id }: Omit<Boot, "worker_id">) => ({
  hostname: "host-1",
  engine_version: "0.18.0",
  capacity_slots: 1,
  project_id,
  domain_id,
  image_version: image,
})

const live = Effect.fnUntraced(function* (boot: Boot) {
  const { worker_id } = boot
  yield* ask(address(Worker, worker_id, RegisterWorker.make(wordsOf(boot))))
  yield* beating(worker_id)
})

/** Sends a heartbeat every 20 s until interrupted. */
export const beating = Effect.fnUntraced(function* (worker_id: WorkerId) {
  const { publish: beat } = yield* LiveWorkers
  yield* Effect.repeat(beat({ worker_id, jobs: [] }), Schedule.spaced("20 seconds"))
})

/** A worker that registered by itself, and sends heartbeats until the test ends. */
export const standing = Effect.fnUntraced(function* (
  name: string,
  { image = "image-1", domain_id = null }: { image?: string; domain_id?: DomainId | null } = {},
) {
  const boot = { worker_id: WorkerId.make(name), image, project_id, domain_id }
  yield* ask(address(Worker, boot.worker_id, RegisterWorker.make(wordsOf(boot))))
  return yield* Effect.forkScoped(beating(boot.worker_id))
})

/** Machines of two images; each becomes a worker as soon as it runs. */
export const room = Effect.gen(function* () {
  const around = yield* Effect.context<Commands | LiveWorkers | Log>()
  const images = ["image-1", "image-2"].map(imageOf)
  return machineRoom(images, (boot) => Effect.orDie(Effect.provideContext(live(boot), around)))
})

/** Runs the fleet manager; without machines it cannot boot any. */
export const keeping = Effect.fnUntraced(function* (
  machines: MachineRoom | undefined,
  more: Partial<FleetOptions> = {},
) {
  const options = { ...fleet_options, ...more }
  if (machines === undefined) return yield* begin(fleetManager(options, undefined))
  const compute = yield* Layer.build(computeMemory(machines))
  return yield* begin(fleetManager(options, Context.get(compute, Compute)))
})

/** The current state of each worker, in order of arrival. */
export const states = Effect.gen(function* () {
  const found = new Map<string, string>()
  for (const { id, event } of yield* happenings("worker")) found.set(id, event.type)
  return [...found.values()]
})

/** Ids of the booted workers, in order. */
export const booted = Effect.map(happenings("worker"), (all) =>
  all.flatMap(({ id, event }) => (event.type === "WorkerBootStarted" ? [WorkerId.make(id)] : [])),
)
