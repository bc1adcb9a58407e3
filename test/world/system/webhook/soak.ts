/** Many runs of the webhook simulation, each with its own seed. */
import { randomInt } from "node:crypto"
import { simulate, tellBroken } from "./simulation.ts"

const seed_max = 2 ** 31
/** Runs per progress line. */
const report_every = 100

/** Runs this many simulations, or the one of this seed; returns whether all invariants held. */
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
    if (done % report_every > 0 && done < runs) continue
    const seconds = Math.round((performance.now() - since) / 1000)
    console.log(`soak: ${done} runs of webhooks kept their laws, ${received} events (${seconds} s)`)
  }
  return true
}
