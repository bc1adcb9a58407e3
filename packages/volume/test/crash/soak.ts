/** Large numbers of crash runs, each with its own seed. */
import { randomInt } from "node:crypto"
import { brokenReport, crash } from "./crash.ts"
import { crashDamaged } from "./damage.ts"
import { openSimulated } from "./open.ts"

const seed_max = 2 ** 31
/** Crash points between two lines of output. */
const report_every = 2000
/** One of this many runs damages files. */
const damaged_every = 5

/**
 * Runs until this many crash points, or the run of one seed. Returns whether no invariant was
 * violated. Prints the first violation with its seed.
 */
export const soakVolume = async (points_wanted: number, only?: number) => {
  const since = performance.now()
  const first = only ?? randomInt(seed_max / 2)
  console.log(`soak: crashes of a volume from seed ${first} on`)
  const tally = new Map<string, number>()
  let points = 0
  let reported_points = 0
  const report = () => {
    const seconds = (performance.now() - since) / 1000
    const rate = Math.round(points / seconds)
    const kinds = [...tally].map(([what, times]) => `${times} ${what}`).join(", ")
    console.log(`soak: ${points} crash points kept (${rate} a second): ${kinds}`)
  }
  for (let seed = first; points < points_wanted; seed++) {
    const simulate = seed % damaged_every === 0 ? crashDamaged : crash
    const outcome = await simulate(seed, openSimulated)
    if (outcome.broken !== undefined) {
      console.error(brokenReport(outcome))
      return false
    }
    points += outcome.points
    for (const [what, times] of outcome.tally) tally.set(what, (tally.get(what) ?? 0) + times)
    if (only !== undefined) break
    if (points - reported_points < report_every) continue
    reported_points = points
    report()
  }
  report()
  return true
}
