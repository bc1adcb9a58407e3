/**
 * The examples in the API reference are responses of a server; share protection and webhooks have
 * tests of their own.
 */
import sharp from "sharp"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import { type Document, serviceOf } from "./gaps.ts"
import { type Examples, fileText, recorder } from "./recording.ts"

const start_ms_max = 240_000
const shown_ms_max = 60_000

/** The files of examples, by service. */
const files: Readonly<Record<string, string>> = {
  "blob-storage": "blob-storage/apis/examples.json",
  system: "system/apis/examples.json",
  "capital-pressure": "capital-pressure/examples.json",
  "carrier-search": "carrier-search/examples.json",
  "plant-disease": "plant-disease/examples.json",
}

interface Ask {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, unless it is a text or bytes. */
  readonly body?: unknown
  /** The part of the response that is recorded. */
  readonly shown?: (response: never) => unknown
}

type Recording = ReturnType<typeof recorder>["record"]

type Client = (method: string, path: string, ask?: Ask) => Promise<unknown>

const json = "application/json"
const lines = { "content-type": "application/x-ndjson" }

/** Text of a body: JSON is parsed, and only text is recorded. */
const bodyOf = async (response: Response) => {
  const type = response.headers.get("content-type") ?? ""
  if (type.startsWith(json)) return await response.json()
  const text = await response.text()
  return /^(text\/plain|text\/csv|application\/x-ndjson)/.test(type) ? text : ""
}

const clientOf = (server: Server, record: Recording): Client =>
  async function ask(method, path, { token, headers = {}, body, shown } = {}) {
    const is_raw = typeof body === "string" || body instanceof FormData
    const response = await fetch(new URL(path, server.url), {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && !is_raw && { "content-type": json }),
        ...headers,
      },
      ...(body !== undefined && { body: is_raw ? body : JSON.stringify(body) }),
    })
    const { status } = response
    const answered = await bodyOf(response)
    const request = body instanceof FormData ? undefined : body
    record({
      method,
      path,
      status,
      // The caller knows the type of the response that it shortens.
      response: shown === undefined || status >= 400 ? answered : shown(answered as never),
      ...(request !== undefined && { request }),
    })
    return answered
  }

const first_lines = (text: string) => text.split("\n").slice(0, 6).join("\n")

const stored = "/v1/admin/audit?type=BlobStored"

interface AuditEvents {
  readonly events: ReadonlyArray<{ readonly id: string; readonly position: number }>
}

/** Waits until so many commits have blobs; a commit has all blobs of up to a second. */
const waitForCommits = ({ url, credentials }: Server, count: number) =>
  until("commits with blobs", shown_ms_max, async () => {
    const headers = { authorization: `Bearer ${credentials.admin.token}` }
    const response = await fetch(new URL(stored, url), { headers })
    const { events } = (await response.json()) as AuditEvents
    return new Set(events.map(({ position }) => position)).size >= count && events
  })

/** Blob operations, and events about them, in at least two commits. */
const storeBlobs = async (ask: Client, server: Server) => {
  const { token } = server.credentials.blob
  const data = Buffer.from("Hello, Almanac.").toString("base64")
  const body = { data, policy: "REPLICATION_POLICY_NONE", labels: { model: "resnet50" } }
  const put = (await ask("PUT", "/v1/blobs", { token, body })) as { id: { id: string } }
  await waitForCommits(server, 1)
  await ask("PUT", "/v1/blobs", {
    token,
    body: { ...body, policy: "REPLICATION_POLICY_REPLICA2" },
  })
  const chunks = [
    { data, final: false, policy: "REPLICATION_POLICY_NONE" },
    { data, final: true },
  ]
  const text = chunks.map((chunk) => `${JSON.stringify(chunk)}\n`).join("")
  await ask("POST", "/v1/blobs/stream", { token, headers: lines, body: text })
  const id = Buffer.from(put.id.id, "base64").toString("hex")
  await ask("GET", `/v1/blobs/${id}`, { token })
  await ask("GET", `/v1/blobs/${"0".repeat(32)}`, { token })
  await ask("GET", `/v1/blobs/${id}/stream`, { token })
  await ask("GET", `/v1/blobs/${id}/stat`, { token })
  await ask("GET", "/v1/blobs?limit=1", { token })
  await ask("POST", "/v1/blobs/stat", { token, headers: lines, body: `"${id}"\n` })
  await ask("POST", "/v1/blobs/get", { token, headers: lines, body: `"${id}"\n` })
  await ask("DELETE", `/v1/blobs/${id}`, { token })
}

/** A second node that joins, reports and leaves. */
const joinCluster = async (ask: Client, { credentials }: Server) => {
  const { token } = credentials.blob
  const node_id = "node-2"
  const node = { node_id, address: "10.0.0.2:9797", capacity_bytes: 1_000_000_000_000 }
  await ask("POST", "/v1/cluster/join", { token, body: node })
  const beat = { node_id, used_bytes: 4096, blob_count: 1, ring_version: 0 }
  await ask("POST", "/v1/cluster/heartbeat", { token, body: beat })
  await ask("POST", "/v1/cluster/heartbeat", { token, body: { ...beat, node_id: "node-9" } })
  await ask("GET", "/v1/cluster/state", { token })
  await ask("GET", "/v1/cluster/metrics", { token })
  await ask("POST", "/v1/cluster/sync-ring", { token, body: { ring_version: 0 } })
  await ask("POST", "/v1/cluster/compact", { token })
  await ask("POST", "/v1/cluster/leave", { token, body: { node_id, graceful: false } })
  await ask("POST", "/v1/cluster/leave", { token, body: { node_id, graceful: false } })
}

/** The first event of a stream, as a client parses it. */
const readEvent = async (server: Server, record: Recording) => {
  const path = "/v1/events?service=blob-storage&since=0"
  const { token } = server.credentials.admin
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(new URL(path, server.url), { headers })
  let text = ""
  for await (const part of response.body ?? []) {
    text += Buffer.from(part).toString()
    const [, id, event, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)\n/m.exec(text) ?? []
    if (data === undefined) continue
    record({ method: "GET", path, status: 200, response: { id, event, data } })
    break
  }
}

/** The audit log, credentials, read models and documents. */
const operate = async (ask: Client, server: Server) => {
  const { credentials } = server
  const { token } = credentials.admin
  const { project_id } = credentials.tenant
  const [first] = await waitForCommits(server, 2)
  await ask("GET", `${stored}&limit=1`, { token })
  const aggregate = `/v1/admin/audit/blob-storage/volume/${first?.id}`
  await ask("GET", `${aggregate}?limit=1`, { token })
  const part = "service=blob-storage&aggregate=volume"
  await ask("GET", `/v1/admin/audit/export?${part}`, { token, shown: first_lines })
  await until("a checkpoint", shown_ms_max, async () => {
    const answer = await fetch(new URL("/v1/admin/audit/head", server.url), {
      headers: { authorization: `Bearer ${token}` },
    })
    return answer.status === 200
  })
  await ask("GET", "/v1/admin/audit/head", { token })
  await ask("GET", "/v1/admin/audit/key", { token })
  await ask("GET", "/v1/admin/log", { token })
  await ask("GET", "/v1/admin/read-models", { token })
  await ask("POST", "/v1/admin/read-models/blob-storage/rebuild", { token })
  await ask("POST", "/v1/admin/read-models/blob-storage/difference", { token })
  await ask("GET", "/v1/admin/charts", { token })
  const grant = { name: "ci", scopes: ["blobs:read"], roles: [], ttl_seconds: 86_400 }
  await ask("POST", "/v1/admin/tokens", { token, body: grant })
  await ask("POST", "/v1/admin/tokens/ci/revoke", { token })
  await ask("POST", "/v1/admin/tokens/ci/revoke", { token })
  const secret = { project_id, name: "access key", payload: "example" }
  await ask("POST", "/v1/admin/secrets", { token, body: secret })
  const trust = { project_id, roles: ["member"] }
  const made = await ask("POST", "/v1/admin/trusts", { token, body: trust })
  const { trust_id } = made as { trust_id: string }
  await ask("POST", `/v1/admin/trusts/${trust_id}/revoke`, { token })
  await ask("POST", "/v1/events/tickets", { token })
  await ask("GET", "/v1/", { token })
  await ask("GET", "/metrics", { token, shown: first_lines })
  for (const path of ["/", "/livez", "/readyz"]) await ask("GET", path)
  const shown = ({ info, ...rest }: Record<string, Record<string, unknown>>) => ({
    ...(rest.openapi === undefined ? { asyncapi: rest.asyncapi } : { openapi: rest.openapi }),
    info: { title: info?.title, version: info?.version },
  })
  for (const path of ["/openapi.json", "/v1/openapi.json", "/asyncapi.json"]) {
    await ask("GET", path, { shown })
  }
}

const readServices = async (ask: Client) => {
  await ask("GET", "/health")
  await ask("GET", "/api/dashboard")
  await ask("GET", "/api/sources")
  const metric = "nfci"
  await ask("GET", `/api/metrics/${metric}/history?since=2026-01-01`)
  await ask("GET", `/api/metrics/${metric}/detail`)
  await ask("GET", "/api/metrics/unknown/detail")
  await ask("GET", "/api/tier/1/history")
  await ask("GET", "/api/scheduler")
  await ask("GET", "/api/watchlist")
  await ask("GET", "/api/search?start=100001&end=100040")
  await ask("GET", "/api/search?start=9&end=1")
  await ask("GET", "/api/search/sources")
  const create = { width: 224, height: 224, channels: 3, background: "green" } as const
  const image = await sharp({ create }).png().toBuffer()
  const form = new FormData()
  form.append("file", new Blob([Uint8Array.from(image)], { type: "image/png" }), "leaf.png")
  await ask("POST", "/predict?top_k=3", { body: form })
  await ask("POST", "/predict", { body: new FormData() })
  await ask("POST", "/predict/batch", { body: form })
  const model = (await ask("GET", "/predict/model")) as { name: string }
  await ask("GET", "/v2")
  await ask("GET", "/v2/health/live")
  await ask("GET", "/v2/health/ready")
  await ask("GET", "/v2/models/plants")
  await ask("GET", "/v2/models/plants/ready")
  await ask("GET", `/v2/models/${model.name}`)
  await ask("GET", `/v2/models/${model.name}/ready`)
  const inputs = [
    { name: "image", shape: [1], datatype: "BYTES", data: [image.toString("base64")] },
  ]
  await ask("POST", `/v2/models/${model.name}/infer`, { body: { inputs } })
}

describeWithServer("the examples of the API reference", () => {
  let server: Server
  let examples: Examples = {}
  beforeAll(async () => {
    const folder = newFolder()
    await runVerb(folder, ["carriers", "import", "--demo"])
    await runVerb(folder, ["ingest", "--demo"])
    server = await startServer(folder, { ALMANAC_AUDIT__CHECKPOINT_SECONDS: "1" })
    const document: Document = await (await fetch(new URL("/openapi.json", server.url))).json()
    const recorded = recorder(document)
    const ask = clientOf(server, recorded.record)
    await until("readiness", shown_ms_max, async () => {
      const { status } = await fetch(new URL("/readyz", server.url))
      return status === 200
    })
    await storeBlobs(ask, server)
    await joinCluster(ask, server)
    await readEvent(server, recorded.record)
    await operate(ask, server)
    await readServices(ask)
    examples = recorded.examples
  }, start_ms_max)
  afterAll(async () => {
    await cleanUp()
  })

  it.each(Object.entries(files))("of %s are recorded responses", async (service, name) => {
    const file = `${import.meta.dirname}/../../../gateway/${name}`
    const own = Object.entries(examples).filter(([key]) => {
      const [, path = ""] = key.split(" ")
      return serviceOf(path) === service
    })
    expect(own).not.toEqual([])
    await expect(fileText(file, Object.fromEntries(own))).toMatchFileSnapshot(file)
  })
})
