/**
 * A rolling upgrade: a process of the previous release and one of this release share a bus, a log
 * and a blob cluster. Commands go through both, each shows the other's changes, and the older one
 * is replaced on its own data folder.
 */
import assert from "node:assert/strict"
import { afterAll, it } from "vitest"
import { noise } from "../contract/blob-storage/engine-bytes.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { hashed } from "../world/server/blob-client.ts"
import { type Client, connect, responseText } from "../world/server/client.ts"
import { getRaw, putAs } from "../world/server/cluster-run.ts"
import { type Deployment, newDeployment } from "../world/server/deployment.ts"
import { startNats } from "../world/server/outside-nats.ts"
import { dumpReadModels } from "../world/server/read-models.ts"
import { cleanUp, newFolder, outputOf, type Server, until } from "../world/server/server.ts"
import { describePrevious } from "./previous.ts"
import { differences } from "./rows.ts"

const soon_ms = 60_000
const minutes_ms = 300_000
const rounds = 12

let stopAll: () => Promise<unknown> = () => Promise.resolve()
afterAll(async () => {
  await stopAll()
  await cleanUp()
}, soon_ms)

interface Members {
  readonly nodes: ReadonlyArray<{ readonly state: string }>
}

const untilBoth = (client: Client) =>
  until("both nodes to be active", soon_ms, async () => {
    const answer = await client.ask("GET", "/v1/cluster/state")
    if (answer.status !== 200) return false
    const { nodes }: Members = JSON.parse(answer.body.toString())
    return nodes.filter(({ state }) => /active/i.test(state)).length === 2
  })

const reads = async (client: Client, bytes: Uint8Array) => {
  const { id } = hashed(bytes)
  const body = await until(`a get of ${id}`, soon_ms, async () => {
    const answer = await getRaw(client, id)
    return answer.status === 200 && answer.body
  })
  assert(body.equals(bytes))
}

const put = async (client: Client, bytes: Uint8Array) => {
  const answer = await putAs(client, bytes, "REPLICA2")
  assert(answer.status < 300, responseText(answer))
}

/** Registers a target that waits for its trust: a command without external calls. */
const register = async (client: Client, name: string) => {
  const answer = await client.ask("POST", "/v1/targets", {
    headers: { "content-type": "application/json", "idempotency-key": `key-${name}` },
    body: JSON.stringify({ name, endpoint: "https://s3.example.org", bucket: "bucket-of-it" }),
  })
  assert(answer.status < 300, responseText(answer))
  const id: string = JSON.parse(answer.body.toString()).target.id
  return { id, position: String(answer.headers["x-almanac-position"]) }
}

const readTarget = (client: Client, id: string, position: string) =>
  client.ask("GET", `/v1/targets/${id}`, { headers: { "x-almanac-position": position } })

const clientsOf = (deployment: Deployment, { url }: Server) => ({
  blob: connect(url, deployment.tokens.blob),
  member: connect(url, deployment.tokens.member),
  admin: connect(url, deployment.tokens.admin),
})
type Clients = ReturnType<typeof clientsOf>

/** Each in turn shows what the other did; `part` is part of the targets' names. */
const workBoth = async (part: string, one: Clients, other: Clients) => {
  for (let n = 0; n < rounds; n++) {
    const [here, there] = n % 2 === 0 ? [one, other] : [other, one]
    const bytes = noise(1000 + n, 100 * (n + 1))
    await put(here.blob, bytes)
    await reads(there.blob, bytes)
    const made = await register(here.member, `target-${part}-${n}`)
    const found = await readTarget(there.member, made.id, made.position)
    assert.equal(found.status, 200, responseText(found))
    // Put again on the other one: the two releases encode their messages differently.
    await put(there.blob, bytes)
    await reads(here.blob, bytes)
  }
}

const readModelsOf = (deployment: Deployment, name: string) =>
  dumpReadModels(deployment.dataOf(name))

const rowsIn = (dump: ReturnType<typeof dumpReadModels>, table: string) =>
  Object.values(dump).reduce((sum, tables) => sum + (tables[table]?.length ?? 0), 0)

const ready = async ({ url }: Server) => {
  const answer = await fetch(`${url}/readyz`)
  assert.equal(answer.status, 200, await answer.text())
}

describePrevious("this release together with the one before", (place) => {
  describeWithServer("over one bus", () => {
    it("shows what the other did, and takes over its data", { timeout: minutes_ms }, async () => {
      const nats = await startNats(newFolder())
      const environment = {
        ALMANAC_SERVICES: "blob-storage,share-protection",
        ALMANAC_QUOTA__TARGETS: "1000",
      }
      const deployment = newDeployment({ url: nats.url, environment })
      stopAll = async () => {
        await deployment.stop()
        await nats.stop()
      }
      const old = await deployment.start("first", { from: place() })
      const fresh = await deployment.start("second")
      const [before, now] = [clientsOf(deployment, old), clientsOf(deployment, fresh)]
      await Promise.all([untilBoth(before.blob), untilBoth(now.blob)])
      await workBoth("first", before, now)

      // Every event type that only this release has also reaches the older one.
      const hook = await now.admin.ask("POST", "/v1/webhooks", {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: "https://hooks.example.org/", types: ["blob_stored"] }),
      })
      assert(hook.status < 300, responseText(hook))
      await workBoth("with-webhook", before, now)
      await Promise.all([ready(old), ready(fresh)])

      const gone = noise(1000, 100)
      const { id } = hashed(gone)
      const deleted = await before.blob.ask("DELETE", `/v1/blobs/${id}?scope=cluster`)
      assert(deleted.status < 300, responseText(deleted))
      assert.equal((await getRaw(now.blob, id)).status, 404)

      await until("both read models to be the same", soon_ms, () => {
        const [one, other] = [readModelsOf(deployment, "first"), readModelsOf(deployment, "second")]
        const targets = rowsIn(one, "share_protection_target")
        return targets === 2 * rounds && differences(one, other).length === 0
      })

      await deployment.stop("first")
      assert.doesNotMatch(outputOf(old), /"(ERROR|FATAL)"/)
      const third = await deployment.start("first")
      const next = clientsOf(deployment, third)
      await untilBoth(next.blob)
      for (let n = 1; n < rounds; n++) await reads(next.blob, noise(1000 + n, 100 * (n + 1)))
      assert.equal((await getRaw(next.blob, id)).status, 404)
      await workBoth("exchanged", next, now)
      await Promise.all([ready(third), ready(fresh)])
      const verified = await deployment.verb("verifier", ["audit", "verify"])
      assert.equal(verified.code, 0, verified.stdout + verified.stderr)
      for (const clients of [before, now, next])
        for (const one of Object.values(clients)) one.close()
    })
  })
})
