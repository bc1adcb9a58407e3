/** Many damaged stores with starts of a real server; `npm run soak -- --only log` runs more. */
import { randomInt } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder } from "../../world/server/server.ts"
import { runCases } from "./cases.ts"

const seed_max = 2 ** 31
const count = 100

afterAll(cleanUp)

describeWithServer("logs whose stores were damaged", () => {
  it("serve each acknowledged commit, or name its position as missing", async () => {
    const seed = randomInt(seed_max)
    console.log(`${count} cases from seed ${seed}`)
    expect(await runCases({ folder: newFolder(), seed, count })).toEqual([])
  }, 300_000)
})
