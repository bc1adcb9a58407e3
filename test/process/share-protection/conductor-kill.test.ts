/** The conductor and its agents are killed without warning, repeatedly, on one real log. */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { seeded } from "../../world/seeded.ts"
import { cleanUp, newFolder, runVerb, startScript } from "../../world/server/server.ts"

const kills = 3
const seed_max = 2 ** 31
/** Completed jobs before a kill, and the delay after the last of them in milliseconds. */
const jobs_max = 4
const moment_ms_max = 300
const done_ms_max = 60_000
const quiet_ms_max = 90_000

const child = "test/process/share-protection/conductor-child.ts"

afterAll(cleanUp)

interface Quiet {
  readonly quiet_ms: number
  readonly counts: Readonly<Record<string, number>>
  readonly ticks: ReadonlyArray<string>
}

describeWithServer("a conductor that is killed with its agents", () => {
  it("leaves nothing open, nothing held, and nothing done by two", async () => {
    const data_dir = newFolder()
    const seed = randomInt(seed_max)
    const random = seeded(seed)
    for (let n = 1; n <= kills; n++) {
      const running = startScript(data_dir, [child, data_dir, "load", String(seed + n)])
      const jobs = random.between(1, jobs_max)
      await running.waitFor(new RegExp(`(?:^completed$[^]*){${jobs}}`, "m"), done_ms_max)
      await pause(random.next() * moment_ms_max)
      running.child.kill("SIGKILL")
      await running.ended
    }
    const last = startScript(data_dir, [child, data_dir, "rest", String(seed)])
    const text = await last.waitFor(/^quiet (.*)$/m, quiet_ms_max)
    assert.deepEqual(await last.ended, { code: 0, signal: null })
    const { quiet_ms, counts, ticks }: Quiet = JSON.parse(text)
    console.log(`seed ${seed}: quiet after ${quiet_ms} ms: ${JSON.stringify(counts)}`)
    expect([...new Set(ticks)]).toEqual(ticks)
    for (const type of ["JobCompleted", "WorkerDied"]) {
      assert((counts[type] ?? 0) > 0, `${type}: there was something to recover from`)
    }
    const verified = await runVerb(data_dir, ["audit", "verify"])
    assert.equal(verified.code, 0, `audit verify: ${verified.stdout}\n${verified.stderr}`)
  }, 170_000)
})
