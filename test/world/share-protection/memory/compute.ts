/** In-memory machines that boot as fast as a test specifies, or never. */
import { Effect, Fiber, Layer } from "effect"
import { type Boot, Compute, type Image } from "#actors/share-protection/ports/compute.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { BackendUnavailable, WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

export interface Machine extends Boot {
  is_active: boolean
}

export interface MachineRoom {
  readonly images: ReadonlyArray<Image>
  readonly machines: Map<WorkerId, Machine>
  /** Boot time of a machine, in milliseconds; Infinity: it never boots. */
  boot_ms: number
  /** Maximum number of machines. */
  room: number
  is_reachable: boolean
  /** The program that a machine runs once it is active, until it is deleted. */
  readonly agent: (boot: Boot) => Effect.Effect<unknown, unknown>
}

export const machineRoom = (
  images: ReadonlyArray<Image>,
  agent: MachineRoom["agent"] = () => Effect.void,
): MachineRoom => ({
  images,
  machines: new Map(),
  boot_ms: 0,
  room: Infinity,
  is_reachable: true,
  agent,
})

export const computeMemory = (room: MachineRoom) =>
  Layer.effect(
    Compute,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const lives = new Map<WorkerId, Fiber.Fiber<unknown, unknown>>()
      const reached = Effect.suspend(() =>
        room.is_reachable
          ? Effect.void
          : Effect.fail(new BackendUnavailable({ detail: "The machine room does not answer." })),
      )
      const refusal = ({ image }: Boot) => {
        if (room.machines.size >= room.room) return "There is no room for another machine."
        const is_there = room.images.some(({ name }) => name === image)
        return is_there ? undefined : `The image ${image} does not exist.`
      }
      const life = (machine: Machine) =>
        Effect.gen(function* () {
          yield* room.boot_ms === Infinity ? Effect.never : Effect.sleep(room.boot_ms)
          machine.is_active = true
          yield* room.agent(machine)
        })

      return Compute.of({
        image: (name) =>
          Effect.as(
            reached,
            room.images.find((image) => image.name === name),
          ),
        boot: Effect.fnUntraced(function* (boot) {
          yield* reached
          if (room.machines.has(boot.worker_id)) return
          const detail = refusal(boot)
          if (detail !== undefined) return yield* new WorkerUnavailable({ detail })
          const machine: Machine = { ...boot, is_active: false }
          room.machines.set(boot.worker_id, machine)
          lives.set(boot.worker_id, yield* Effect.forkIn(life(machine), scope))
        }),
        destroy: Effect.fnUntraced(function* (worker_id) {
          yield* reached
          room.machines.delete(worker_id)
          const life = lives.get(worker_id)
          lives.delete(worker_id)
          if (life !== undefined) yield* Fiber.interrupt(life)
        }),
        find: (worker_id) =>
          Effect.map(reached, () => {
            const machine = room.machines.get(worker_id)
            if (machine === undefined) return "gone"
            return machine.is_active ? "active" : "booting"
          }),
      })
    }),
  )
