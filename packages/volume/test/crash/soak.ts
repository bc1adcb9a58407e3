/** The crashes of a volume in large numbers, each run by a seed of its own. */
import { randomInt } from "node:crypto"
import { crash, tellBroken } from "./crash.ts"
import { crashDamaged } from "./damage.ts"
import { openSimulated } from "./open.ts"

const seed_max = 2 ** 31
/** Crash points from one line to the next. */
const told_every = 2000
/** One run in so many has its files damaged. */
const damaged_every = 5

/**
 * Lives through so many crash points, or through the run of one seed; answers whether all laws were
 * kept. The first run that breaks one is told, with its seed.
 */
export const soakVolume = async (points_wanted: number, only?: number) => {
  const since = performance.now()
  const first = only ?? randomInt(seed_max / 2)
  console.log(`soak: crashes of a volume from seed ${first} on`)
  const tally = new Map<string, number>()
  let points = 0
  let told = 0
  const tell = () => {
    const seconds = (performance.now() - since) / 1000
    const rate = Math.round(points / seconds)
    const kinds = [...tally].map(([what, times]) => `${times} ${what}`).join(", ")
    console.log(`soak: ${points} crash points kept (${rate} a second): ${kinds}`)
  }
  for (let seed = first; points < points_wanted; seed++) {
    const simulate = seed % damaged_every === 0 ? crashDamaged : crash
    const outcome = await simulate(seed, openSimulated)
    if (outcome.broken !== undefined) {
      console.error(tellBroken(outcome))
      return false
    }
    points += outcome.points
    for (const [what, times] of outcome.tally) tally.set(what, (tally.get(what) ?? 0) + times)
    if (only !== undefined) break
    if (points - told < told_every) continue
    told = points
    tell()
  }
  tell()
  return true
}
