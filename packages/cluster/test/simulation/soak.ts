/** Large numbers of simulations, each with its own seed. */
import { randomInt } from "node:crypto"
import { describeViolation, real_play, simulate } from "./simulation.ts"

const seed_max = 2 ** 31
/** Runs between two lines of output. */
const report_every = 500

/**
 * Runs this many simulations, or the one of a seed. Returns whether all invariants held. Prints the
 * first violation with its story.
 */
export const soakCluster = async (runs: number, only?: number) => {
  const since = performance.now()
  const first = only ?? randomInt(seed_max - runs)
  console.log(`soak: simulated clusters from seed ${first} on`)
  const tally = new Map<string, number>()
  const report = (done: number) => {
    const seconds = Math.round((performance.now() - since) / 1000)
    const kinds = Array.from(tally, ([what, times]) => `${times} ${what}`)
    console.log(`soak: ${done} simulated clusters kept their laws (${seconds} s)`)
    if (done >= runs) console.log(`soak: ${kinds.join(", ")}`)
  }
  for (let done = 0; done < runs; done++) {
    const outcome = await simulate(first + done, real_play)
    if (outcome.violation !== undefined) {
      console.error(describeViolation(outcome))
      return false
    }
    for (const [what, times] of outcome.tally) tally.set(what, (tally.get(what) ?? 0) + times)
    if ((done + 1) % report_every === 0 || done + 1 === runs) report(done + 1)
  }
  return true
}
