/** The simulation in large numbers, each run by a seed of its own. */
import { randomInt } from "node:crypto"
import { simulate, tellBroken } from "./simulation.ts"

const seed_max = 2 ** 31
/** Runs from one line to the next. */
const told_every = 100

/**
 * Simulates so many runs, or as many as begin before `end` (as performance.now tells it); answers
 * whether all kept their laws. Each run says what it saw only when a law was broken.
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
    if ((done + 1) % told_every === 0 && done + 1 < runs) tell(done + 1)
  }
  tell(runs)
  return true
}
