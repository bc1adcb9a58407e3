/**
 * A test registry on loopback that behaves like FMCSA's QCMobile: it responds as documented or as
 * planned, sheds load, and counts requests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import type { Docket } from "../contract/registry.ts"
import { documented, json, type Reply } from "./registry-answers.ts"

export interface Plan {
  /** The dockets of a number. */
  readonly dockets?: (mc: number) => ReadonlyArray<Docket>
  /** A response to send instead; `nth` counts the requests for this number, from 1. */
  readonly instead?: (mc: number, nth: number) => Reply | undefined
  /** Response time in milliseconds. */
  readonly latency_ms?: (mc: number, nth: number) => number
  /** Maximum concurrent requests; above it the registry responds with 503. */
  readonly shed_above?: number
  /** The only valid web key. */
  readonly key?: string
}

export interface Counts {
  total: number
  in_flight: number
  in_flight_max: number
  /** Requests answered with 503, because too many were in flight. */
  shed: number
  /** Requests that the client aborted before the response. */
  aborted: number
}

export interface FakeRegistry {
  /** The value for `carrier.registry_url`. */
  readonly url: string
  readonly counts: Counts
  /** Number of requests for each docket number. */
  readonly requests: Map<number, number>
  readonly headers: Array<IncomingMessage["headers"]>
  /** Can be changed at any time. */
  plan: Plan
}

export const fake_key = "4be2c0fa91d7"

/** A number from 0 to 1 that is deterministic in its arguments. */
export const drawn = (...values: ReadonlyArray<number>): number => {
  let hash = 2166136261
  for (const value of values) {
    for (let left = value >>> 0, n = 0; n < 4; n += 1, left >>>= 8) {
      hash = Math.imul(hash ^ (left & 0xff), 16777619)
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  }
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32
}

/** Latencies with a median and a heavy tail. Source: market facts B3. */
export const heavyTail = (median_ms: number, seed: number) => (mc: number, nth: number) => {
  const [a, b, c] = [drawn(seed, mc, nth, 1), drawn(seed, mc, nth, 2), drawn(seed, mc, nth, 3)]
  return median_ms * Math.exp(a + b + c - 1.5)
}

export const newCounts = (): Counts => ({
  total: 0,
  in_flight: 0,
  in_flight_max: 0,
  shed: 0,
  aborted: 0,
})

/** Starts the registry on a free port. */
export const startRegistry = async (plan: Plan) => {
  const counts = newCounts()
  const fake: FakeRegistry = { url: "", counts, requests: new Map(), headers: [], plan }
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    void serve(fake, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has this form of address.
  const { port } = server.address() as AddressInfo
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { fake: Object.assign(fake, { url: `http://127.0.0.1:${port}/qc/services` }), stop }
}

/** The registry, for the life of the scope. */
export const registryFake = (plan: Plan) =>
  Effect.acquireRelease(
    Effect.promise(() => startRegistry(plan)),
    ({ stop }) => Effect.promise(stop),
  ).pipe(Effect.map(({ fake }) => fake))

const path = /^\/qc\/services\/carriers\/docket-number\/(\d+)$/
const headers_max = 1000

const serve = async (fake: FakeRegistry, request: IncomingMessage, response: ServerResponse) => {
  const { counts, requests, plan } = fake
  const url = new URL(request.url ?? "", "http://registry")
  const mc = Number(path.exec(url.pathname)?.[1])
  const nth = (requests.get(mc) ?? 0) + 1
  requests.set(mc, nth)
  if (fake.headers.length < headers_max) fake.headers.push(request.headers)
  counts.total += 1
  counts.in_flight += 1
  counts.in_flight_max = Math.max(counts.in_flight_max, counts.in_flight)
  const is_shed = counts.in_flight > (plan.shed_above ?? Number.POSITIVE_INFINITY)
  let is_counted = true
  // Runs once, on the response or when the client disconnects.
  const leaves = () => {
    if (is_counted) counts.in_flight -= 1
    is_counted = false
  }
  response.once("close", () => {
    if (is_counted) counts.aborted += 1
    leaves()
  })
  const ms = is_shed ? 1 : (plan.latency_ms?.(mc, nth) ?? 0)
  if (ms > 0) await sleep(ms)
  if (response.destroyed) return
  if (is_shed) counts.shed += 1
  send(is_shed ? { status: 503, body: "{}" } : replyTo(plan, url, mc, nth), response, leaves)
}

const replyTo = (plan: Plan, url: URL, mc: number, nth: number): Reply => {
  const key = url.searchParams.get("webKey")
  if (plan.key !== undefined && !key) return json("Must provide Webkey", 404)
  if (plan.key !== undefined && key !== plan.key) return json("Webkey not found", 404)
  return plan.instead?.(mc, nth) ?? documented(plan.dockets?.(mc) ?? [])
}

const drip_ms = 10

const send = (reply: Reply, response: ServerResponse, leaves: () => void) => {
  const { status, headers = {}, manner = "whole" } = reply
  const body = Buffer.from(reply.body)
  switch (manner) {
    case "hang":
      return
    case "reset":
      leaves()
      return response.socket?.destroy()
    case "hang in body":
    case "break off": {
      response.writeHead(status, { ...headers, "content-length": body.length })
      response.write(body.subarray(0, body.length - 1), () => {
        if (manner === "hang in body") return
        leaves()
        response.socket?.destroy()
      })
      return
    }
    case "drip":
      return void drip(body, response.writeHead(status, headers), leaves)
    case "whole":
      leaves()
      return response.writeHead(status, headers).end(body)
  }
}

const drip = async (body: Buffer, response: ServerResponse, leaves: () => void) => {
  for (const byte of body) {
    response.write(Buffer.of(byte))
    await sleep(drip_ms)
  }
  leaves()
  response.end()
}
