/**
 * Gateways without other roles: their tokens, and that they respond to every request like a process
 * with all roles. Source: decisions 0140 and 0153.
 */
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type ApiDocument, apiDocument, type Operation } from "../../security/api-document.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { describeWithRestic } from "../../world/programs/restic.ts"
import { connect, responseText } from "../../world/server/client.ts"
import { newDeployment } from "../../world/server/deployment.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import { cleanUp, newFolder, type Server, until } from "../../world/server/server.ts"

const soon_ms = 60_000
const minutes_ms = 300_000
const some_id = "01234567-89ab-7def-8123-456789abcdef"

const token = "everything".repeat(4)
const tenant = { project_id: "1".repeat(32), user_id: "2".repeat(32), domain_id: "default" }

const environment = {
  // The dashboard, searches and predictions use no other process, and the nodes own the blobs.
  ALMANAC_SERVICES: "share-protection",
  ALMANAC_AUTH__TOKENS: JSON.stringify([
    {
      name: "everything",
      token,
      ...tenant,
      roles: ["admin", "svc_admin", "member", "svc_domain_owner"],
    },
  ]),
}

/** A bus, and a deployment on it. */
const newWorld = async () => {
  const folder = newFolder()
  const nats = await startNats(folder)
  return { folder, nats, deployment: newDeployment({ url: nats.url, environment }) }
}
type World = Awaited<ReturnType<typeof newWorld>>

const shapes = ["A", "B"] as const
type Shape = (typeof shapes)[number]
const shapeOf = (shape: Shape) => ({ environment: { ALMANAC_API__SHAPE: shape } })
const gateway = ({ deployment }: World, shape: Shape) =>
  deployment.start(shape, { roles: ["gateway"], ...shapeOf(shape) })

/** A token that is issued before any gateway runs. */
const issueByVerb = async ({ deployment }: World) => {
  const args = ["token", "issue", "--name", "by command", "--role", "admin"]
  const { code, stdout, stderr } = await deployment.verb("commands", args)
  expect([code, stderr]).toEqual([0, ""])
  expect(stdout).toMatch(/^alm_[\w-]{43}\n$/)
  return stdout.trim()
}

let one: World
let several: World
/** By shape: a process with all roles, and one that is only a gateway. */
let whole: ReadonlyArray<Server>
let gateways: ReadonlyArray<Server>
let of_verb: string

beforeAll(async () => {
  one = await newWorld()
  several = await newWorld()
  whole = await Promise.all(shapes.map((shape) => one.deployment.start(shape, shapeOf(shape))))
  await several.deployment.start("w", { roles: ["actors", "conductor", "agent"] })
  of_verb = await issueByVerb(several)
  gateways = await Promise.all(shapes.map((shape) => gateway(several, shape)))
}, minutes_ms)
afterAll(async () => {
  for (const { deployment } of [one, several]) await deployment.stop()
  await cleanUp()
  for (const { nats } of [one, several]) await nats.stop()
})

const secret_ref = `https://vault.example.org/v1/secrets/${some_id}`

/** Values of body fields, by name. */
const values: Readonly<Record<string, unknown>> = {
  name: "name",
  endpoint: "https://s3.example.org",
  bucket: "bucket-of-it",
  bucket_name: "bucket-of-it",
  bucket_scheme: "per_project",
  s3_access_key_ref: secret_ref,
  s3_secret_key_ref: secret_ref,
  share_id: some_id,
  target_id: some_id,
  template_id: some_id,
  target_template_id: some_id,
  policy_id: some_id,
  backup_id: some_id,
  schedule: "0 3 * * *",
  retention: { keep_last: 1 },
  image: "no such image",
  domain_ids: ["d".repeat(32)],
  scopes: [],
  roles: ["member"],
  project_id: tenant.project_id,
  payload: "payload",
  url: "https://hooks.example.org/x",
  after: 0,
}

/** Creates everything first, then reads and changes it, and deletes it last. */
const order = ({ method, path }: Operation) => {
  if (method === "POST" && !path.includes("{")) return 0
  return ["GET", "PATCH", "POST", "PUT", "DELETE"].indexOf(method) + 1
}

/** The body of an operation, with all required fields. */
const bodyOf = ({ resolved }: ApiDocument, { requestBody }: Operation) => {
  const schema = requestBody?.content?.["application/json"]?.schema
  if (schema === undefined) return undefined
  const names = resolved(schema).required ?? ["name"]
  // A field without a value here is missing in JSON too, and the response is 400.
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, values[name]])))
}

/** Sends every operation to a server, with the ids that it created; returns the statuses. */
const statusesOf = async ({ url }: Server) => {
  const text = await (await fetch(new URL("/openapi.json", url))).text()
  const document = apiDocument(text)
  const made = new Map<string, string>()
  const statuses = new Map<string, string>()
  for (const operation of document.operations.toSorted((a, b) => order(a) - order(b))) {
    const { method, path } = operation
    const [collection = ""] = path.split("/{")
    const head = path.replace(/\{\w+\}/, made.get(collection) ?? some_id)
    const body = bodyOf(document, operation)
    const answer = await fetch(new URL(head.replaceAll(/\{\w+\}/g, some_id), url), {
      method,
      redirect: "manual",
      ...(body !== undefined && { body }),
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    })
    // An event stream does not end by itself.
    const is_stream = answer.headers.get("content-type")?.startsWith("text/event-stream")
    if (is_stream) await answer.body?.cancel()
    const message = is_stream ? "" : await answer.text()
    const [, id] = /"id":"([\w-]{20,40})"/.exec(message) ?? []
    if (method === "POST" && answer.ok && id !== undefined) made.set(path, id)
    const { code = "" } = answer.ok || message === "" ? {} : JSON.parse(message)
    statuses.set(`${method} ${path}`, `${answer.status} ${code}`.trim())
  }
  return statuses
}

/** Every file below these folders that contains the text. */
const filesWith = async (text: string, ...folders: ReadonlyArray<string>) => {
  const found: Array<string> = []
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      if (entry.isFile() && (await readFile(path)).includes(text)) found.push(path)
    }
  }
  return found
}

const statusOf = async ({ url }: Server, bearer: string) => {
  const headers = { authorization: `Bearer ${bearer}` }
  return (await fetch(new URL("/v1/admin/workers", url), { headers })).status
}

describeWithServer("a process that is a gateway alone", () => {
  it.each(shapes)(
    "answers every operation of Shape %s as one with all roles does",
    async (shape) => {
      const at = shapes.indexOf(shape)
      const servers = [whole[at], gateways[at]].filter((server) => server !== undefined)
      const [expected, got] = await Promise.all(servers.map(statusesOf))
      expect(got).toEqual(expected)
      expect(expected?.size).toBeGreaterThan(70)
      // Server errors would be the same at both. Without restic no process boots machines.
      const answered = [...(expected ?? [])].filter(([name]) => name !== "POST /v1/admin/rollouts")
      expect(answered.filter(([, status]) => status.startsWith("50"))).toEqual([])
    },
    minutes_ms,
  )

  it(
    "takes the tokens that others issued, and none that one of them revoked",
    async () => {
      const [one, other] = gateways as [Server, Server] // a gateway for each shape
      const both = (bearer: string) => Promise.all([one, other].map((at) => statusOf(at, bearer)))
      expect(await both(of_verb)).toEqual([200, 200])
      const [at_one, at_other] = [connect(one.url, of_verb), connect(other.url, of_verb)]
      const body = { name: "by hand", scopes: [], roles: ["admin"] }
      const made = await at_one.json<{ token: string }>("POST", "/v1/admin/tokens", body)
      expect(await both(made.token)).toEqual([200, 200])
      const path = "/v1/admin/tokens/by%20hand/revoke"
      expect(await at_other.json("POST", path)).toEqual({ revoked: 1 })
      expect(await statusOf(other, made.token)).toBe(401)
      const since = performance.now()
      await until("the other to hear of it", soon_ms, async () => {
        return (await statusOf(one, made.token)) === 401
      })
      console.log(`revoked at another gateway after ${Math.round(performance.now() - since)} ms`)
      expect((await at_other.ask("POST", path)).status).toBe(404)
      for (const client of [at_one, at_other]) client.close()
      const folders = ["A", "B", "w"].map(several.deployment.dataOf)
      expect(await filesWith(made.token, several.folder, ...folders)).toEqual([])
    },
    minutes_ms,
  )

  it(
    "accepts them again when it is back, until a command revokes them",
    async () => {
      await several.deployment.stop("A")
      const again = await gateway(several, "A")
      expect(await statusOf(again, of_verb)).toBe(200)
      const { code } = await several.deployment.verb("commands", ["token", "revoke", "by command"])
      expect(code).toBe(0)
      const all = [again, ...gateways.slice(1)]
      await until("both to hear of it", soon_ms, async () => {
        const statuses = await Promise.all(all.map((at) => statusOf(at, of_verb)))
        return statuses.every((status) => status === 401)
      })
    },
    minutes_ms,
  )

  describeWithRestic("with a conductor that boots machines", () => {
    it(
      "starts a rollout, and another when that one is through",
      async () => {
        const client = connect(gateways[1]?.url ?? "", token)
        const domain_id = "default"
        for (let times = 0; times < 2; times++) {
          const body = JSON.stringify({ image: "almanac-agent", domain_ids: [domain_id] })
          const headers = { "content-type": "application/json" }
          const made = await client.ask("POST", "/v1/admin/rollouts", { headers, body })
          expect(made.status, responseText(made)).toBe(202)
          const { id } = JSON.parse(made.body.toString())
          await until("the rollout to be through", soon_ms, async () => {
            const path = `/v1/admin/rollouts/${id}`
            const { state } = await client.json<{ state: string }>("GET", path)
            return state === "succeeded"
          })
        }
        client.close()
      },
      minutes_ms,
    )
  })
})
