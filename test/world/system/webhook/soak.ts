/** Webhooks' simulation in large numbers, each run by a seed of its own. */
import { randomInt } from "node:crypto"
import { simulate, tellBroken } from "./simulation.ts"

const seed_max = 2 ** 31
/** Runs from one line to the next. */
const told_every = 100

/** Simulates so many runs, or the one of this seed; answers whether all kept their laws. */
export const soakWebhooks = (runs: number, seed?: number) => {
  const first = seed ?? randomInt(seed_max - runs)
  const since = performance.now()
  console.log(`soak: webhooks from seed ${first} on`)
  let received = 0
  for (let done = 1; done <= runs; done++) {
    const outcome = simulate(first + done - 1)
    if (outcome.broken !== undefined) {
      console.error(tellBroken(outcome))
      return false
    }
    received += outcome.received
    if (done % told_every > 0 && done < runs) continue
    const seconds = Math.round((performance.now() - since) / 1000)
    console.log(`soak: ${done} runs of webhooks kept their laws, ${received} events (${seconds} s)`)
  }
  return true
}
