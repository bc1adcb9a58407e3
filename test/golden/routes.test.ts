/**
 * Golden responses of every operation to many kinds of request. They must not change when the code
 * that admits requests is rewritten. CONTRIBUTING.md explains how to record them again.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { apiDocument, type Operation } from "../security/api-document.ts"
import { cleanUp, newFolder, type Server, startServer, until } from "../world/server/server.ts"
import { buildIfNeeded } from "../world/web/built.ts"
import { recorder, type Sent } from "./recording.ts"

const some_id = "01234567-89ab-7def-8123-456789abcdef"
const startup_ms_max = 30_000

let server: Server
let operations: ReadonlyArray<Operation> = []
beforeAll(async () => {
  buildIfNeeded()
  server = await startServer(newFolder(), { ALMANAC_CAPITAL__TOKEN: "t".repeat(40) })
  operations = apiDocument(
    await (await fetch(new URL("/openapi.json", server.url))).text(),
  ).operations
  // The server's own worker registers shortly after startup, and then appears in every list of
  // workers.
  await until("a worker", startup_ms_max, async () => {
    const headers = { authorization: `Bearer ${server.credentials.admin.token}` }
    const answer = await fetch(new URL("/v1/admin/workers", server.url), { headers })
    return (await answer.text()).includes('"state":"ready"')
  })
  // A service's first response to a readiness check may be too late on a busy machine.
  await until("readiness", startup_ms_max, async () => {
    const { status } = await fetch(new URL("/readyz", server.url))
    return status === 200
  })
})
afterAll(cleanUp)

/** A development token that may call the operation at this path. */
const tokenFor = (path: string) => {
  const { admin, tenant, blob } = server.credentials
  if (/^\/v1\/(blobs|cluster)/.test(path)) return blob.token
  return /^\/v1\/(admin|events)|^\/metrics/.test(path) ? admin.token : tenant.token
}

/** The response depends on whether the work that an earlier request started has ended. */
const begins_work = /reconciliation\/trigger$/

/** Filters that leave out the events of background work, which come at any moment. */
const filters: Readonly<Record<string, string>> = { "/v1/admin/audit": "?actor=token:admin" }

/** The kinds of request to one operation, in the order in which they are sent. */
const kindsOf = ({ method, path }: Operation): ReadonlyArray<readonly [string, Sent]> => {
  const sent = { method, path: path.replaceAll(/\{\w+\}/g, some_id) }
  const authorization = `Bearer ${tokenFor(path)}`
  const json = { "content-type": "application/json" }
  const takes_body = method !== "GET" && method !== "DELETE"
  const body = takes_body ? { body: "{}", headers: { authorization, ...json } } : {}
  const filtered = `${sent.path}${filters[path] ?? ""}`
  const allowed = { ...sent, path: filtered, headers: { authorization }, ...body }
  const withHeader = (more: Readonly<Record<string, string>>) => ({
    ...allowed,
    headers: { ...allowed.headers, ...more },
  })
  return [
    ["no token", sent],
    ["a wrong token", { ...sent, headers: { authorization: "Bearer wrong" } }],
    ["a token", allowed],
    [
      "a token as X-Auth-Token",
      withHeader({ authorization: "", "x-auth-token": authorization.slice(7) }),
    ],
    ["an Idempotency-Key", withHeader({ "idempotency-key": `golden ${method} ${path}` })],
    ["a trace", withHeader({ traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` })],
    ["a request id", withHeader({ "x-request-id": "golden" })],
    ["an Origin", withHeader({ origin: "https://elsewhere.example" })],
    ["an unknown Accept", withHeader({ accept: "application/x-unknown" })],
    ["an unknown query", { ...allowed, path: `${sent.path}?limit=-1&unknown=1` }],
    ["another method", { ...allowed, method: "PROPFIND" }],
    ...(method === "GET"
      ? ([
          ["HEAD", { ...allowed, method: "HEAD" }],
          ["If-None-Match: *", withHeader({ "if-none-match": "*" })],
        ] as const)
      : []),
    ...(takes_body
      ? ([
          ["a body that is no JSON", { ...allowed, body: "{" }],
          ["a body of text", { ...withHeader({ "content-type": "text/plain" }), body: "x" }],
          ["a body in chunks", { ...allowed, is_chunked: true }],
        ] as const)
      : []),
  ]
}

/** Groups the kinds of request that get the same response. */
const grouped = (answers: ReadonlyArray<readonly [kind: string, answer: string]>) => {
  const kinds = new Map<string, Array<string>>()
  for (const [kind, answer] of answers) kinds.set(answer, [...(kinds.get(answer) ?? []), kind])
  return [...kinds].map(([answer, all]) => `# ${all.join("; ")}\n${answer}\n`).join("\n")
}

const partOf = (path: string) =>
  /^\/v1\/(blobs|cluster|admin|webhooks|events)(\/|$)/.exec(path)?.[1] ??
  /^\/(v1|v2|api|predict)(\/|$)/.exec(path)?.[1] ??
  "pages"

const parts = [
  "pages",
  "v1",
  "blobs",
  "cluster",
  "admin",
  "webhooks",
  "events",
  "api",
  "predict",
  "v2",
]

describe("every operation", () => {
  it.each(parts)("of %s responds to each kind of request as recorded", async (part) => {
    const { send, close } = recorder(server.url)
    let text = ""
    for (const operation of operations.filter(({ path }) => partOf(path) === part)) {
      const answers: Array<readonly [string, string]> = []
      const kinds = kindsOf(operation)
      const asked = begins_work.test(operation.path) ? kinds.slice(0, 3) : kinds
      for (const [kind, sent] of asked) answers.push([kind, await send(sent)])
      text += `## ${operation.method} ${operation.path}\n\n${grouped(answers)}\n`
    }
    close()
    expect(text).not.toBe("")
    await expect(text).toMatchFileSnapshot(`answers/${part}.txt`)
  })
})
