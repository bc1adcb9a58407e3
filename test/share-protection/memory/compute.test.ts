import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ComputePlace, computeContract } from "../../contract/share-protection/compute.ts"
import { computeMemory, machineRoom } from "../../world/share-protection/memory/compute.ts"

const engine_version = "0.19.1"

const make = () => {
  const room = machineRoom([
    { name: "worker-2", properties: { svc_worker_image: true, engine_version } },
    { name: "debian", properties: { svc_worker_image: false, engine_version: null } },
  ])
  room.boot_ms = 20
  const place: ComputePlace = {
    images: { worker: "worker-2", engine_version, other: "debian" },
    project_id: "p",
    machines: (worker_id) => Effect.sync(() => (room.machines.has(worker_id) ? 1 : 0)),
    patience_ms: 1000,
  }
  return { place, layer: computeMemory(room) }
}

describe("compute in memory", () => {
  computeContract((name, body) =>
    it.live(name, () => {
      const { place, layer } = make()
      return Effect.scoped(body(place)).pipe(Effect.provide(layer))
    }),
  )
})
