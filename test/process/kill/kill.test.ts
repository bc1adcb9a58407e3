/**
 * The whole process is killed without warning, under load, repeatedly on the same folder. `npm run
 * soak` runs many more rounds.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder } from "../../world/server/server.ts"
import { killRounds, kills } from "./kill.ts"

const rounds = 3
const seed_max = 2 ** 31

afterAll(cleanUp)

describeWithServer("a server that is killed under load", () => {
  it("loses nothing that it acknowledged, and has nothing twice", async () => {
    const seed = randomInt(seed_max)
    const done = await killRounds({
      data_dir: newFolder(),
      seed,
      rounds,
      onRound: (round, n) => console.log(`seed ${seed}, round ${n}: ${JSON.stringify(round)}`),
    })
    expect(done.map(({ kill }) => kill)).toEqual([...kills])
    const acknowledged = done.reduce((sum, round) => sum + round.acknowledged, 0)
    assert(acknowledged > 100, "there was a load")
    assert(done.at(-1)?.nats_kills, "nats-server was killed as well")
  }, 170_000)
})
