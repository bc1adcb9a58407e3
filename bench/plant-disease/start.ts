/** Startup of the whole server in the plant suite: with the demo model, and without the service. */
import { join } from "node:path"
import { startGateway } from "../gateway/almanac-gateway.ts"
import type { PlantSeat } from "./seats.ts"

const others = ["blob-storage", "share-protection", "capital-pressure", "carrier-search"]

/** A round is one start, from spawning the process to `almanac ready`; stopping it is not timed. */
const startSeat = (name: string, folder: string, services: ReadonlyArray<string>): PlantSeat => ({
  name,
  round: async () => {
    const began = performance.now()
    const { stop } = await startGateway(folder, { ALMANAC_SERVICES: JSON.stringify(services) })
    const ms = performance.now() - began
    await stop()
    return { runs: 1, runs_per_s: 1000 / ms, p50_ms: ms, p99_ms: ms }
  },
  stop: async () => undefined,
})

export const without_plants = "without plants"

/** Each server has its own folder, which the discarded round creates. */
export const startSeats = (folder: string): ReadonlyArray<() => Promise<PlantSeat>> => [
  async () => startSeat(without_plants, join(folder, "start-without"), others),
  async () =>
    startSeat("with the demo model", join(folder, "start-with"), [...others, "plant-disease"]),
]
