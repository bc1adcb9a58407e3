/**
 * Webhooks under random faults. `npm run soak -- --only webhooks` runs a thousand of these; `--seed
 * S` repeats one.
 */
import { randomInt } from "node:crypto"
import { assert, describe, it } from "vitest"
import { simulate, tellBroken } from "../../world/system/webhook/simulation.ts"

const runs = Number(process.env.ALMANAC_SIMULATIONS ?? 50)
const seed_max = 2 ** 31
/** In milliseconds, on a busy machine. */
const timeout_ms = 300_000

/** Events that must occur in fifty runs; otherwise the runs prove little. */
const wanted = [
  ...["a try", "a look", "a save", "a load", "a read", "a command"].map((at) => `killed at ${at}`),
  "a save fails",
  "the answer of a save is lost",
  "a read fails",
  "a look fails",
  ...["fails", "takes and fails", "stalls", "answers late", "cuts its answer", "is busy"].map(
    (fault) => `a receiver ${fault}`,
  ),
  "a receiver refuses",
  "a receiver is down",
  "an event came twice",
  "two deliverers at once",
  "dead letters are asked for again",
]

describe("webhooks", () => {
  it(
    `lose nothing and keep their order in ${runs} seeded runs`,
    () => {
      const first = randomInt(seed_max - runs)
      console.log(`webhooks: seeds ${first} to ${first + runs - 1}`)
      const seen = new Set<string>()
      for (let seed = first; seed < first + runs; seed++) {
        const outcome = simulate(seed)
        assert.isUndefined(outcome.broken, tellBroken(outcome))
        for (const what of outcome.tally.keys()) seen.add(what)
      }
      const missing = wanted.filter((what) => !seen.has(what))
      if (runs >= 50) assert.deepEqual(missing, [], "each of these has happened")
    },
    timeout_ms,
  )

  it("are the same for the same seed", () => {
    const seed = randomInt(seed_max)
    assert.deepEqual(simulate(seed), simulate(seed))
  })
})
