/** The operators' API with the built page; a test can change its responses. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { charts } from "#server/charts.ts"
import type { AuditCommit, AuditEvent, Job } from "../../../../web/console/api.ts"
import { listen } from "../served.ts"
import * as canned from "./canned.ts"

/** The only valid token. */
export const token = "operators-token"

type Body = object | ((query: URLSearchParams) => object)

export interface ConsoleServed {
  readonly origin: string
  /** The response for each path prefix; a number is an error status. */
  readonly answers: Map<string, Body | number>
  readonly jobs: Job[]
  /** Newest first. */
  readonly events: AuditEvent[]
  readonly past: AuditCommit[]
  /** Whether the API works without a token. */
  is_open: boolean
  /** Maximum page size of share protection; larger requests are rejected. */
  limit_max: number
  /** If set, `GET /v1/events` responds with this status instead of a stream. */
  stream_status: number
  /** Every request, and whether it carried the token. */
  readonly requests: Array<{
    readonly method: string
    readonly url: string
    readonly is_known: boolean
    /** The idempotency key. */
    readonly key: string | undefined
    readonly last_id: string | undefined
  }>
  /** Sends a published event to all listeners. */
  readonly tell: (type: string) => void
  /** Disconnects the streams. */
  readonly cut: () => void
  readonly reset: () => void
  readonly close: () => Promise<void>
}

const page = (rows: readonly object[], query: URLSearchParams, noun: string) => {
  const limit = Number(query.get("limit"))
  const marker = query.get("marker")
  const from = marker === null ? 0 : rows.findIndex((row) => Reflect.get(row, "id") === marker) + 1
  const visible = rows.slice(from, from + limit)
  const last: object | undefined = visible.at(-1)
  const next_marker = from + limit < rows.length && last ? Reflect.get(last, "id") : null
  return { [noun]: visible, pagination: { limit, count: visible.length, next_marker } }
}

const matching = (row: object, query: URLSearchParams, names: readonly string[]) =>
  names.every((name) => !query.has(name) || query.get(name) === Reflect.get(row, name))

const placeOf = (marker: string) => Number(marker.split(".")[0])

const auditPage = (events: readonly AuditEvent[], query: URLSearchParams) => {
  const limit = Number(query.get("limit") ?? 100)
  const marker = query.get("marker")
  const is_up = query.get("order") === "asc"
  const found = events
    .filter((event) =>
      matching(event, query, ["service", "aggregate", "type", "subject", "actor", "request_id"]),
    )
    .filter(({ position }) => {
      if (marker === null) return true
      return is_up ? position > placeOf(marker) : position < placeOf(marker)
    })
  const sorted = is_up ? found.toReversed() : found
  const visible = sorted.slice(0, limit)
  const last = visible.at(-1)
  const more = sorted.length > limit && last ? { next_marker: `${last.position}.0` } : {}
  return { events: visible, position: events[0]?.position ?? 0, ...more }
}

const historyPage = (past: readonly AuditCommit[], query: URLSearchParams) => {
  const [limit, after] = [Number(query.get("limit") ?? 100), Number(query.get("marker") ?? 0)]
  const later = past.filter(({ position }) => position > after)
  const commits = later.slice(0, limit)
  const more = later.length > limit ? { next_marker: String(commits.at(-1)?.position) } : {}
  const name = { service: "share-protection", aggregate: "job", id: canned.uuid(9) }
  return { ...name, commits, ...more }
}

const usual = (served: ConsoleServed): ReadonlyArray<readonly [string, Body | number]> => [
  ["/v1/", { version: "v1" }],
  [
    "/v1/admin/read-models",
    {
      read_models: [
        { name: "share-protection", position: 990, behind: 0 },
        { name: "blob-storage", position: 700, behind: 250 },
      ],
    },
  ],
  [
    "/v1/admin/log",
    {
      generation: 2,
      position: 1000,
      aggregates: 321,
      bytes: 7_500_000_000,
      limit_bytes: 10_000_000_000,
      used_share: 0.75,
    },
  ],
  ["/v1/admin/audit", (query) => auditPage(served.events, query)],
  [
    "/v1/admin/jobs",
    (query) => {
      const names = ["state", "job_type", "project_id"]
      return page(
        served.jobs.filter((one) => matching(one, query, names)),
        query,
        "jobs",
      )
    },
  ],
  ["/v1/admin/workers", (query) => page(canned.workers, query, "workers")],
  ["/v1/admin/rollouts", (query) => page(canned.rollouts, query, "rollouts")],
  ["/v1/admin/coverage", (query) => page(canned.coverage, query, "coverage")],
  ["/v1/admin/targets", (query) => page(canned.targets, query, "targets")],
  ["/v1/admin/scheduling", { paused: false, paused_at: null, next_run: canned.ago(-3600) }],
  [
    "/v1/admin/reconciliation",
    {
      status: "idle",
      last_run_at: canned.ago(100),
      next_run_at: canned.ago(-200),
      drift_count: 0,
    },
  ],
  ["/v1/cluster/metrics", canned.cluster],
  ["/v1/cluster/state", canned.cluster],
  ["/v1/admin/charts", { charts: charts() }],
  [
    `/v1/admin/audit/share-protection/job/${canned.uuid(9)}`,
    (query) => historyPage(served.past, query),
  ],
  ["/api/dashboard", { composite: { z: 0.4242, z_label: "balanced" }, demo: true }],
  ["/api/search/sources", { sources: [{ registry: "mirror", carriers: 40_000 }] }],
  ["/predict/model", { name: "demo", is_demo: true }],
]

const readiness =
  "blob-storage ok\nshare-protection ok\ncapital-pressure ok\nplant-disease no model\n"

const refusal = (status: number) => ({
  code: "svc.some_error",
  title: "Refused",
  category: "tenant_action_required",
  detail: `the server said ${status}`,
})

const say = (response: ServerResponse, status: number, body: object) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))

export const serveConsole = async (): Promise<ConsoleServed> => {
  const streams = new Set<ServerResponse>()
  let sequence = 40
  const stream = (response: ServerResponse) => {
    if (served.stream_status !== 200) return say(response, served.stream_status, refusal(403))
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(": connected\n\n")
    streams.add(response)
    response.once("close", () => streams.delete(response))
    return undefined
  }
  const answer = (request: IncomingMessage, response: ServerResponse, url: URL) => {
    const is_known = request.headers.authorization === `Bearer ${token}`
    const last_id = request.headers["last-event-id"]?.toString()
    const { method = "", headers } = request
    const key = headers["idempotency-key"]?.toString()
    served.requests.push({ method, url: url.pathname + url.search, is_known, key, last_id })
    if (url.pathname === "/readyz") return response.writeHead(503).end(readiness)
    if (!is_known && !served.is_open) return say(response, 401, refusal(401))
    if (url.pathname === "/v1/events") return stream(response)
    const found = served.answers.get(url.pathname) ?? 404
    const limit_max = url.pathname.startsWith("/v1/admin/audit") ? 1000 : served.limit_max
    const limit = url.searchParams.get("limit") ?? String(Math.min(100, limit_max))
    if (Number(limit) > limit_max) return say(response, 400, refusal(400))
    url.searchParams.set("limit", limit)
    if (typeof found === "number") return say(response, found, refusal(found))
    return say(response, 200, typeof found === "function" ? found(url.searchParams) : found)
  }
  const listening = await listen((request, response, url) => void answer(request, response, url))
  const served: ConsoleServed = {
    ...listening,
    answers: new Map(),
    jobs: [],
    events: [],
    past: [],
    requests: [],
    is_open: false,
    stream_status: 200,
    limit_max: 1000,
    tell: (type) => {
      const event = { type, source: "/almanac/share-protection/job", subject: canned.uuid(9) }
      const text = `id: ${++sequence}\nevent: ${type}\ndata: ${JSON.stringify(event)}\n\n`
      // In two chunks, as a network may deliver it.
      for (const one of streams) {
        one.write(text.slice(0, 20))
        one.write(text.slice(20))
      }
    },
    cut: () => {
      for (const one of streams) one.destroy()
    },
    reset: () => {
      served.answers.clear()
      for (const [path, body] of usual(served)) served.answers.set(path, body)
      served.jobs.splice(0, Infinity, ...canned.jobs)
      served.events.splice(0, Infinity, ...canned.auditEvents)
      served.past.splice(0, Infinity, ...canned.past)
      served.requests.length = 0
      Object.assign(served, { is_open: false, stream_status: 200, limit_max: 1000 })
    },
  }
  served.reset()
  return served
}
