/**
 * A volume through hundreds of random, seeded crashes: nothing acknowledged is lost or changed,
 * nothing corrupt is served, nothing deleted comes back.
 *
 * `node test/soak.ts --only volume --runs N` runs many more.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { describe, it } from "vitest"
import { brokenReport, crash, type Ending, type Open, type Outcome } from "./crash.ts"
import { crashDamaged } from "./damage.ts"
import { openSimulated } from "./open.ts"

const points_wanted = 500
const damages_wanted = 100
/** Number of runs within which a lying disk is detected. */
const lies_runs = 60
const seed_max = 2 ** 31
/** On a busy machine, in milliseconds. */
const timeout_ms = 300_000

type Simulate = (seed: number, open: Open) => Promise<Outcome>

/**
 * Runs from a random seed until this many crash points were met. Returns the number of each event.
 */
const until = async (points: number, simulate: Simulate) => {
  const first = randomInt(seed_max / 2)
  const tally = new Map<string, number>()
  let met = 0
  let seed = first
  for (; met < points; seed++) {
    const outcome = await simulate(seed, openSimulated)
    assert(outcome.broken === undefined, brokenReport(outcome))
    met += outcome.points
    for (const [what, times] of outcome.tally) tally.set(what, (tally.get(what) ?? 0) + times)
  }
  console.log(`volume: ${met} crash points, seeds ${first} to ${seed - 1}`)
  return tally
}

describe("a volume on a disk that fails", () => {
  it(
    `keeps its promises at ${points_wanted} crash points`,
    async () => {
      const tally = await until(points_wanted, crash)
      const wanted: ReadonlyArray<Ending> = ["power", "kill", "clean", "full", "error"]
      for (const ending of wanted) assert(tally.has(ending), `no life ended by ${ending}`)
    },
    timeout_ms,
  )
  it(
    `serves nothing corrupt, and loses nothing else, in ${damages_wanted} damaged volumes`,
    async () => {
      await until(damages_wanted, crashDamaged)
    },
    timeout_ms,
  )
  it("is the same for the same seed", async () => {
    const seed = randomInt(seed_max)
    for (const simulate of [crash, crashDamaged]) {
      const one = await simulate(seed, openSimulated)
      assert.deepEqual(await simulate(seed, openSimulated), one, `seed ${seed}`)
    }
  })
})

/** A disk that breaks one promise. */
const lies: Readonly<Record<string, (open: Open) => Open>> = {
  "does not sync files": (open) => (disk, seed) => {
    const idle = <File extends object>(file: File) => ({ ...file, datasync: async () => {} })
    const create = async (path: string) => idle(await disk.create(path))
    return open({ ...disk, create, open: async (path) => idle(await disk.open(path)) }, seed)
  },
  "does not sync names": (open) => (disk, seed) =>
    open({ ...disk, syncFolder: async () => {} }, seed),
  "does not rename": (open) => (disk, seed) => open({ ...disk, rename: async () => {} }, seed),
}

describe("the crashes detect a disk that", () => {
  for (const [lie, lying] of Object.entries(lies)) {
    it(
      lie,
      async () => {
        for (let seed = 1; seed <= lies_runs; seed++) {
          const { broken } = await crash(seed, lying(openSimulated))
          if (broken) return
        }
        assert.fail(`not detected in ${lies_runs} runs`)
      },
      timeout_ms,
    )
  }
})
