/** The simulation in large numbers, with a separate seed for each run. */
import { randomInt } from "node:crypto"
import { simulate, tellBroken } from "./simulation.ts"

const seed_max = 2 ** 31
/** Runs between two progress lines. */
const report_every = 100

/**
 * Simulates this many runs, or as many as start before `end` (in the time of performance.now);
 * returns whether all of them kept their laws. A run prints its events only if a law was broken.
 */
export const soakSimulation = (runs: number, end: number, first?: number) => {
  const since = performance.now()
  const base = first ?? randomInt(seed_max - runs)
  console.log(`soak: simulations from seed ${base} on`)
  const tell = (done: number) => {
    const seconds = Math.round((performance.now() - since) / 1000)
    console.log(`soak: ${done} simulations kept their laws (${seconds} s)`)
  }
  for (let done = 0; done < runs; done++) {
    if (performance.now() >= end) {
      tell(done)
      return true
    }
    const outcome = simulate(base + done)
    if (outcome.broken !== undefined) {
      console.error(tellBroken(outcome))
      return false
    }
    if ((done + 1) % report_every === 0 && done + 1 < runs) tell(done + 1)
  }
  tell(runs)
  return true
}
