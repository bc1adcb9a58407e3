/** A disk that is temporarily full: the log recovers without a restart of the process. */
import assert from "node:assert/strict"
import { rmSync, statfsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, it } from "vitest"
import { describeWithSmallDisk, fillDisk } from "../world/programs/small-disk.ts"
import { connect } from "../world/server/client.ts"
import { cleanUp, outputOf, startServer, until } from "../world/server/server.ts"

const disk_bytes = 192 * 1024 * 1024
const recovery_ms_max = 60_000
const minutes_ms = 240_000

afterAll(cleanUp)

const readyOf = async (url: string) => {
  const answer = await fetch(new URL("/readyz", url))
  return { status: answer.status, text: await answer.text() }
}

const issue = async (url: string, token: string, name: string) => {
  const operator = connect(url, token)
  try {
    const body = JSON.stringify({ name, scopes: ["blobs:read"], roles: [] })
    const headers = { "content-type": "application/json" }
    const { status } = await operator.ask("POST", "/v1/admin/tokens", { headers, body })
    return status
  } finally {
    operator.close()
  }
}

/** Waits until the audit of the log contains this many tokens. */
const untilAudited = async (url: string, token: string, count: number) => {
  const operator = connect(url, token)
  const path = "/v1/admin/audit?type=TokenIssued&limit=1000"
  try {
    await until(`${count} tokens in the log`, recovery_ms_max, async () => {
      const { events } = await operator.json<{ events: ReadonlyArray<unknown> }>("GET", path)
      return events.length >= count
    })
  } finally {
    operator.close()
  }
}

const recovers = async (dir: string) => {
  const server = await startServer(join(dir, "data"))
  const { url } = server
  const { token } = server.credentials.admin
  const issued: Array<string> = []
  const commit = async (name: string) => {
    const status = await issue(url, token, name)
    if (status === 200) issued.push(name)
    return status
  }
  assert.equal(await commit("before"), 200)
  assert.equal((await readyOf(url)).status, 200)
  const files = fillDisk(dir)
  for (let n = 0; (await commit(`during-${n}`)) === 200; n++) {
    const { bavail, bsize } = statfsSync(dir)
    assert(n < 10_000, `${bavail * bsize} bytes are still free`)
  }
  const unready = await until("not ready", recovery_ms_max, async () => {
    const found = await readyOf(url)
    return found.status === 503 && found
  })
  assert.match(unready.text, /^operations accepts no commands: .*no space left on device$/m)
  // A command fails immediately when the cause is known.
  const since = performance.now()
  assert.equal(await commit("refused"), 503)
  assert(performance.now() - since < 3_000)
  for (const file of files) rmSync(file, { force: true })
  await until(`ready again:\n${outputOf(server)}`, recovery_ms_max, async () => {
    return (await readyOf(url)).status === 200
  })
  assert.equal(await commit("after"), 200)
  await untilAudited(url, token, issued.length)
  assert.match(server.printed.stderr, /could not write to .*no space left on device/)
  assert.deepEqual(await server.stop(), { code: 0, signal: null })
}

describeWithSmallDisk("a log on a disk that was full", disk_bytes, (disk) => {
  it("accepts commands again once there is space, without loss", () => recovers(disk), minutes_ms)
})
