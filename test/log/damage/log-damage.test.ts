/**
 * Each kind of damage to the log's store once: commits are served, or reported missing by position.
 */
import { randomInt } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder } from "../../world/server/server.ts"
import { runEach } from "./cases.ts"

const seed_max = 2 ** 31

afterAll(cleanUp)

describeWithServer("a log whose store was damaged", () => {
  it("serves each acknowledged commit, or names its position as missing", async () => {
    const seed = randomInt(seed_max)
    console.log(`damages from seed ${seed}`)
    expect(await runEach({ folder: newFolder(), seed })).toEqual([])
  }, 120_000)
})
