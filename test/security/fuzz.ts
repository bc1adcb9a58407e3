/**
 * Sends valid and invalid requests to a running server, generated from a seed, and reports wrong
 * responses: 500, none at all, or one that the document does not describe.
 */
import { Agent, request } from "node:http"
import fc from "fast-check"
import type { Server } from "../world/server/server.ts"
import { type Answered, apiDocument, type Operation } from "./api-document.ts"
import { type FuzzRequest, id_place, requestsTo } from "./fuzz-request.ts"
import { knownFields } from "./hostile-value.ts"

/** The server's own deadline for a request is one minute. */
const answer_ms_max = 70_000
/** Maximum number of ids from responses; later requests use the most recent ones. */
const ids_max = 400
const body_shown = 300

export interface Fuzzed {
  readonly seed: number
  readonly requests: number
  /** Number of responses by status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Each wrong response with its request, to reproduce it. */
  readonly wrong: ReadonlyArray<string>
}

const send = (agent: Agent, url: string, query: FuzzRequest) =>
  new Promise<Answered>((resolve, reject) => {
    const { method, path, token, body } = query
    const authorization = token === "" ? {} : { authorization: `Bearer ${token}` }
    const headers = {
      ...authorization,
      ...(body === undefined ? {} : { "content-length": body.length }),
      ...query.headers,
    }
    const sent = request(url, { agent, method, path, headers }, (response) => {
      const { statusCode: status = 0 } = response
      const type = response.headers["content-type"] ?? ""
      const parts: Array<Buffer> = []
      const done = () => resolve({ status, type, text: Buffer.concat(parts).toString() })
      response.on("data", (part: Buffer) => parts.push(part))
      response.on("end", done)
      response.on("error", reject)
      // An event stream does not end until the client disconnects.
      if (type.startsWith("text/event-stream")) {
        response.destroy()
        done()
      }
    })
    sent.setTimeout(answer_ms_max, () => sent.destroy(new Error("no answer in time")))
    sent.on("error", reject)
    sent.end(body)
  })

/** Callers with access to most of what an operation returns. */
const tokensFor = (
  { path }: Operation,
  { admin, blob, blob_read, tenant, tenant_b }: Server["credentials"],
) => {
  const first = /^\/v1\/(blobs|cluster)/.test(path)
    ? blob
    : /^\/v1\/(admin|target-templates)|^\/metrics/.test(path)
      ? admin
      : tenant
  return [first, admin, blob_read, tenant_b].map(({ token }) => token).concat("", "unknown")
}

/** Derived from the name, so that adding an operation does not change the requests to others. */
const seedOf = ({ method, path }: Operation) =>
  Buffer.from(`${method} ${path}`).reduce((sum, byte) => (sum * 31 + byte) % 2 ** 20, 0)

/** Cluster operations come last: a node that leaves the cluster serves no further requests. */
const order = ({ path }: Operation) => (path.startsWith("/v1/cluster/") ? 1 : 0)

/** Document 1 §7 allows a 500 for one client error: a stream without its first chunk. */
const no_header = "The put stream ended without a header chunk."

const isDefect = ({ path }: Operation, { status, text }: Answered) =>
  status === 500 && !(path === "/v1/blobs/stream" && text.includes(no_header))

const textOf = ({ method, path, headers, body }: FuzzRequest) =>
  `${method} ${path.slice(0, body_shown)} ${JSON.stringify(headers).slice(0, body_shown)} ` +
  `${JSON.stringify(body?.toString() ?? "").slice(0, body_shown)}`

/** Sends `runs` requests to each operation, one after another. */
export const fuzz = async (server: Server, seed: number, runs: number): Promise<Fuzzed> => {
  const answer = await fetch(new URL("/openapi.json", server.url))
  const document = apiDocument(await answer.text())
  const { tenant } = server.credentials
  const ids: Array<string> = [tenant.share_id, tenant.trust_id, tenant.project_id]
  ids.push("0".repeat(32), "00000000-0000-7000-8000-000000000000")
  const fields = knownFields(tenant.share_id, tenant.trust_id, tenant.project_id)
  const agent = new Agent({ keepAlive: true })
  const statuses: Record<string, number> = {}
  const wrong: Array<string> = []
  let requests = 0

  const filled = (text: string) => text.replaceAll(id_place, (_, n) => ids[n % ids.length] ?? "")
  const remember = (text: string) => {
    for (const [, id] of text.matchAll(/"(?:\w*_)?id":"([\w-]{20,40})"/g)) {
      if (id !== undefined && !ids.includes(id)) ids.push(id)
    }
    for (const [, blob = ""] of text.matchAll(/"id":"([A-Za-z0-9+/]{22}==)"/g)) {
      ids.push(Buffer.from(blob, "base64").toString("hex"))
    }
    ids.splice(0, ids.length - ids_max)
  }
  const ask = async (operation: Operation, made: FuzzRequest) => {
    const body = made.body && Buffer.from(filled(made.body.toString("latin1")), "latin1")
    const request = { ...made, path: filled(made.path), ...(body && { body }) }
    requests++
    try {
      const got = await send(agent, server.url, request)
      statuses[got.status] = (statuses[got.status] ?? 0) + 1
      remember(got.text)
      const why = isDefect(operation, got) ? "500" : document.misfit(operation, got)
      if (why !== undefined) {
        wrong.push(`${why}: ${textOf(request)} -> ${got.status} ${got.text.slice(0, body_shown)}`)
      }
    } catch (cause) {
      wrong.push(`${cause}: ${textOf(request)}`)
    }
  }

  const operations = document.operations.toSorted((one, other) => order(one) - order(other))
  for (const operation of operations) {
    const tokens = tokensFor(operation, server.credentials)
    const requests = requestsTo(document, operation, tokens, fields)
    for (const one of fc.sample(requests, { seed: seed + seedOf(operation), numRuns: runs })) {
      await ask(operation, one)
    }
  }
  agent.destroy()
  return { seed, requests, statuses, wrong: [...wrong, ...brokenLines(server)] }
}

/**
 * Log lines that report a defect or are not JSON, except for the two at startup; no request should
 * cause one.
 */
const brokenLines = ({ printed }: Server) =>
  printed.stderr
    .split("\n")
    .slice(0, -1)
    .filter((line) => !/^(Dashboard|Console|API reference|Events|Credentials): |^curl /.test(line))
    .filter((line) => {
      try {
        const { level, message } = JSON.parse(line)
        return ["ERROR", "FATAL"].includes(level) || message === "A request failed."
      } catch {
        return true
      }
    })
    .map((line) => `the log says: ${line.slice(0, 2000)}`)
