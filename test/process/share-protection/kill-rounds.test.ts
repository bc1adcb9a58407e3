/** Share protection is killed without warning, under load, repeatedly on the same folder. */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder } from "../../world/server/server.ts"
import { killShareRounds } from "./kill.ts"

const rounds = 3
const seed_max = 2 ** 31

afterAll(cleanUp)

describeWithServer("share protection that is killed under load", () => {
  it("does each acknowledged request once, and its counts are what it lists", async () => {
    const seed = randomInt(seed_max)
    const { done, checked } = await killShareRounds({
      data_dir: newFolder(),
      seed,
      rounds,
      onRound: (round, n) => console.log(`seed ${seed}, round ${n}: ${JSON.stringify(round)}`),
    })
    console.log(`seed ${seed}: ${JSON.stringify(checked)}`)
    expect(done).toHaveLength(rounds)
    const acknowledged = done.reduce((sum, round) => sum + round.acknowledged, 0)
    assert(acknowledged > 100, "there was a load")
    assert(checked.backups > 10, "there was something to look at")
  }, 170_000)
})
