/** Runs the example docs/examples/subscribe.ts as a user does, against a real server. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { afterAll, assert, expect, it } from "vitest"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { connect } from "../world/server/client.ts"
import { cleanUp, newFolder, type Server, startServer, until } from "../world/server/server.ts"
import { read } from "../world/system/events-served.ts"

/** Maximum time for an event from the put to the subscriber on a busy machine. */
const wait_ms_max = 30_000

/** Disables all activity except the test's own. */
const calm = { ALMANAC_COMPUTE__KIND: "none" }

afterAll(cleanUp)

/** Runs the example; it stores its position in the file `place`. */
const subscriber = (data_dir: string, place: string) => {
  const child = spawn(process.execPath, ["docs/examples/subscribe.ts", data_dir, place], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  let text = ""
  child.stdout.setEncoding("utf8").on("data", (some: string) => {
    text += some
  })
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  return {
    events: () =>
      text
        .split("\n")
        .slice(0, -1)
        .map((line): CloudEvent => JSON.parse(line)),
    stop: () => {
      child.kill("SIGTERM")
      return ended
    },
  }
}

const stored = (events: ReadonlyArray<CloudEvent>) =>
  events.filter(({ type }) => type === "blob_stored").map(({ subject }) => subject)

/** Puts this many new blobs and returns their ids in hex. */
const putAll = async ({ url, credentials }: Server, from: number, count: number) => {
  const client = connect(url, credentials.blob.token)
  const headers = { "content-type": "application/octet-stream" }
  const ids = Array.from({ length: count }, async (_, i) => {
    const request = { headers, body: `blob ${from + i}` }
    const { status, body } = await client.ask("POST", "/v1/blobs/stream", request)
    assert.equal(status, 200)
    return Buffer.from(JSON.parse(body.toString()).id.id, "base64").toString("hex")
  })
  return await Promise.all(ids).finally(client.close)
}

describeWithServer("docs/examples/subscribe.ts", () => {
  it("prints each event once, also when it or the server was away meanwhile", async () => {
    const folder = newFolder()
    const place = join(folder, "last-event")
    const before = await startServer(folder, calm)
    const put: Array<string> = []

    const first = subscriber(folder, place)
    put.push(...(await putAll(before, 0, 20)))
    await until("the first events", wait_ms_max, () => stored(first.events()).length === 20)
    put.push(...(await putAll(before, 20, 20)))
    assert.equal(await first.stop(), 0)
    put.push(...(await putAll(before, 40, 20)))

    const second = subscriber(folder, place)
    const seen = () => [...first.events(), ...second.events()]
    await until("those in between", wait_ms_max, () => stored(seen()).length >= 60)
    assert.equal((await before.stop()).code, 0)
    const after = await startServer(folder, calm)
    put.push(...(await putAll(after, 60, 20)))
    await until("those of the second start", wait_ms_max, () => stored(seen()).length >= 80)
    assert.equal(await second.stop(), 0)

    const events = seen()
    expect(stored(events).toSorted()).toEqual(put.toSorted())
    assert.equal(new Set(events.map(({ id }) => id)).size, events.length)

    const over_http = await read(`${after.url}/v1/events`, after.credentials.admin.token, 0)
    const blocks = () => over_http.blocks.length >= events.length
    await until("the same over HTTP", wait_ms_max, blocks)
    over_http.leave()
    expect(over_http.blocks.slice(0, events.length).map(({ event }) => event)).toEqual(events)
    assert.equal((await after.stop()).code, 0)
  }, 120_000)
})
