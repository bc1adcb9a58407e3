/** Only the dashboard fails when its file is unusable; a deleted file is restored. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, runVerb, startServer, until } from "../world/server/server.ts"

/** The file is checked every two seconds; allows for a busy machine. */
const noticed_ms_max = 20_000

afterAll(cleanUp)

const statusOf = async (url: string) => (await fetch(url)).status

describeWithServer("a server whose dashboard has no file of its own", () => {
  it("logs it in one line, keeps the existing file, and serves everything else", async () => {
    const folder = newFolder()
    const diary = join(folder, "diary.txt")
    writeFileSync(diary, "Dear diary,\n")
    const server = await startServer(folder, { ALMANAC_CAPITAL__DATABASE: diary })
    const lines = server.printed.stderr.split("\n").filter((line) => line.includes(diary))
    assert.lengthOf(lines, 1)
    assert.include(lines[0], "cannot be used as a database")
    assert.equal(await statusOf(`${server.url}/api/dashboard`), 500)
    assert.equal(await statusOf(`${server.url}/health`), 200)
    const authorization = `Bearer ${server.credentials.blob.token}`
    const state = await fetch(`${server.url}/v1/cluster/state`, { headers: { authorization } })
    assert.equal(state.status, 200)
    const ready = await (await fetch(`${server.url}/readyz`)).text()
    assert.match(ready, /^blob-storage ok$/m)
    assert.match(ready, /^capital-pressure (?!ok)/m)
    assert.equal(readFileSync(diary, "utf8"), "Dear diary,\n")
    assert.equal((await server.stop()).code, 0)
    const { code, stderr } = await runVerb(folder, ["rebuild", "capital-pressure"], {
      ALMANAC_CAPITAL__DATABASE: diary,
    })
    assert.equal(code, 1)
    assert.match(stderr, /^almanac: \S+diary\.txt cannot be used as a database: .*\n$/)
  }, 120_000)
})

describeWithServer("a server whose dashboard's file was deleted", () => {
  it("answers again within seconds, and rebuilds it when it is asked to", async () => {
    const folder = newFolder()
    const server = await startServer(folder)
    const url = `${server.url}/api/dashboard`
    assert.equal(await statusOf(url), 200)
    const file = join(folder, "capital-pressure.sqlite")
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true })
    await until("the file to be back", noticed_ms_max, () => existsSync(file))
    assert.equal(await statusOf(url), 200)
    const beside = await runVerb(folder, ["rebuild", "capital-pressure"])
    assert.match(beside.stdout, /^capital-pressure: rebuilt to position \d+$/m)
    assert.equal(await statusOf(url), 200)
    assert.equal((await server.stop()).code, 0)
    const alone = await runVerb(folder, ["rebuild"])
    for (const name of ["blob-storage", "share-protection", "capital-pressure", "system"]) {
      assert.match(alone.stdout, new RegExp(`^${name}: rebuilt to position`, "m"))
    }
  }, 120_000)
})
