/**
 * Runs docs/guide-events.md as a new user does, against a server that is killed midway, and checks
 * that every published event matches /asyncapi.json.
 */
import { readFileSync, symlinkSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Ajv } from "ajv"
import { afterAll, assert, it } from "vitest"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { settings_by_path } from "#schemas/settings.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { connect } from "../world/server/client.ts"
import { cleanUp, newFolder, type Server, startServer, until } from "../world/server/server.ts"
import { read } from "../world/system/events-served.ts"
import { commandsIn, guideText, root, walk } from "./guide.ts"

const guide = guideText("guide-events.md")
const test_ms_max = 180_000
/** Maximum time of a delivery on a busy machine, with a few retries and a restart. */
const wait_ms_max = 60_000

/** Disables all activity except the test's own. */
const calm = {
  ALMANAC_COMPUTE__KIND: "none",
  ALMANAC_WEBHOOKS__ALLOW_HTTP: "true",
  ALMANAC_WEBHOOKS__ALLOWED_NETWORKS: "127.0.0.0/8",
}

afterAll(cleanUp)

/** A port that is free now. */
const freePort = async () => {
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  // The address of a listening server.
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}

/** A receiver that fails now and then, and keeps the events that it accepts. */
const startReceiver = async () => {
  const taken: Array<CloudEvent> = []
  let tries = 0
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text
    })
    request.on("end", () => {
      if (tries++ % 10 === 0) return response.writeHead(503, { "retry-after": "1" }).end()
      taken.push(JSON.parse(body))
      response.end()
    })
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  const { port } = server.address() as AddressInfo
  return { taken, url: `http://127.0.0.1:${port}/`, close: () => server.close() }
}

const json = { "content-type": "application/json" }

const makeWebhook = async ({ url, credentials }: Server, to: string) => {
  const client = connect(url, credentials.admin.token)
  const body = JSON.stringify({ url: to, types: ["blob_stored"] })
  const answer = await client.ask("POST", "/v1/webhooks", { headers: json, body })
  client.close()
  assert.equal(answer.status, 201)
}

const putAll = async ({ url, credentials }: Server, from: number, count: number) => {
  const client = connect(url, credentials.blob.token)
  const headers = { "content-type": "application/octet-stream" }
  const put = Array.from({ length: count }, async (_, i) => {
    const request = { headers, body: `event ${from + i}` }
    const { status, body } = await client.ask("POST", "/v1/blobs/stream", request)
    assert.equal(status, 200)
    return Buffer.from(JSON.parse(body.toString()).id.id, "base64").toString("hex")
  })
  return await Promise.all(put).finally(client.close)
}

/** Checks that everything published so far matches its documented message. */
const promised = async ({ url, credentials }: Server) => {
  const document = await (await fetch(`${url}/asyncapi.json`)).json()
  const ajv = new Ajv({ strict: false, validateFormats: false })
  const reader = await read(`${url}/v1/events`, credentials.admin.token, 0)
  await until("the last event", wait_ms_max, () =>
    reader.blocks.some(({ type }) => type === "webhook_deleted"),
  )
  reader.leave()
  for (const { event } of reader.blocks) {
    const service = event.source.split("/")[2]
    const { payload } = document.components.messages[`${service}.${event.type}`]
    assert.isTrue(ajv.validate(payload, event), `${event.type}: ${ajv.errorsText()}`)
  }
  assert.isAtLeast(new Set(reader.blocks.map(({ type }) => type)).size, 6)
}

describeWithServer("docs/guide-events.md", () => {
  it(
    "leads to a webhook, whose backlog survives the death of the server",
    async () => {
      const folder = newFolder()
      const data = join(folder, "data")
      const before = await startServer(data, calm)
      symlinkSync(join(root, "docs"), join(folder, "docs"))
      const env = { URL: before.url, PORT: String(await freePort()) }
      const { code, output } = await walk(folder, commandsIn(guide), env)
      assert.equal(code, 0, output)
      assert.match(output, /"is_delivered":true,"status":204/)
      await promised(before)

      const receiver = await startReceiver()
      await makeWebhook(before, receiver.url)
      const stored = await putAll(before, 0, 15)
      await until("a few deliveries", wait_ms_max, () => receiver.taken.length > 3)
      await before.killAll()
      const after = await startServer(data, calm)
      stored.push(...(await putAll(after, 15, 5)))
      const taken = () => new Set(receiver.taken.map(({ subject }) => subject))
      await until("all of them", wait_ms_max, () => stored.every((id) => taken().has(id)))
      receiver.close()
      assert.equal((await after.stop()).code, 0)
    },
    test_ms_max,
  )

  it("names existing settings and the permissions of a subscriber", () => {
    const names = [...guide.matchAll(/`(webhooks\.\w+)/g)].map(([, name = ""]) => name)
    assert.isAbove(names.length, 4)
    for (const name of names) assert.isTrue(settings_by_path.has(name), name)
    const conf = readFileSync(join(root, "nats.conf"), "utf8")
    const allowed = conf.match(/(?<=^ {10})"\$JS\..+"$/gm) ?? []
    assert.isAbove(allowed.length, 5)
    for (const subject of allowed) assert.include(guide, subject)
  })
})
