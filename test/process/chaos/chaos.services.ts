/** A short chaos run: the worst fault of each kind, on three nats-servers and two processes. */
import { randomInt } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import type { Seeded } from "../../world/seeded.ts"
import { cleanUp } from "../../world/server/server.ts"
import { type ChaosRound, chaos, type Fault, holderOf, leaderOf, type World } from "./chaos.ts"

const timeout_ms = 280_000

/** Long enough for another server to be elected, in milliseconds. */
const short_ms = 7_000

afterAll(cleanUp, timeout_ms)

/** Each fault hits the node that is most important at that moment. */
const worst = async function* (_: Seeded, world: World): AsyncGenerator<Fault> {
  yield { kind: "killed", who: await leaderOf(world, "ALMANAC_LOG"), ms: short_ms }
  yield { kind: "paused", who: await holderOf(world, "system-publisher") }
  yield { kind: "cut off", who: await leaderOf(world, "ALMANAC_LOG"), ms: short_ms }
}

describeWithServer("two processes on three nats-servers", () => {
  it(
    "lose nothing that was acknowledged, and do nothing twice",
    async () => {
      const seed = randomInt(2 ** 31)
      const rounds: Array<ChaosRound> = []
      const checked = await chaos({
        seed,
        processes: 2,
        clients: 4,
        faults: worst,
        onRound: (round) => {
          rounds.push(round)
          console.log(`${round.what}: a gap of ${Math.round(round.gap_ms)} ms`)
        },
      })
      console.log(`seed ${seed}: ${JSON.stringify({ ...checked, elections: undefined })}`)
      expect(rounds.every(({ acknowledged }) => acknowledged > 0)).toBe(true)
      // The paused process lost its leases to the other one.
      expect(checked.elections.get("system-publisher")).toBeGreaterThanOrEqual(2)
      expect(checked.published).toBeGreaterThan(0)
    },
    timeout_ms,
  )
})
