/** Many requests from many seeds to each operation of both shapes. Prints each seed first. */
import { randomInt } from "node:crypto"
import { newFolder, startServer } from "../world/server/server.ts"
import { fuzz } from "./fuzz.ts"

const seed_max = 2 ** 31

/** Sends `runs` requests to each operation; throws if a response is wrong. */
export const soakFuzz = async (runs: number, given?: number) => {
  const shapes = ["A", "B"] as const
  for (const shape of shapes) {
    const seed = given ?? randomInt(1, seed_max)
    console.log(`soak: Shape ${shape} is sent ${runs} requests an operation, seed ${seed}`)
    const server = await startServer(newFolder(), { ALMANAC_API__SHAPE: shape })
    const { requests, statuses, wrong } = await fuzz(server, seed, runs)
    console.log(`soak: ${requests} requests: ${JSON.stringify(statuses)}`)
    await server.stop()
    if (wrong.length > 0) throw new Error(wrong.join("\n"))
  }
}
