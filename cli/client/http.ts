/**
 * HTTP client of the commands: streams bodies, retries, and turns error responses into failures
 * with advice.
 *
 * Source: decisions of document 1, "retries of our own clients"; document 1 §7, document 2 §7.
 */
import { randomUUID } from "node:crypto"
import type { Agent, ClientRequest, IncomingMessage } from "node:http"
import type { Readable } from "node:stream"
import { setTimeout as pause } from "node:timers/promises"
import type { Access } from "#cli/client/access.ts"
import { noResponseFailure, responseFailure, retryAfter } from "#cli/client/error-response.ts"
import { type ClientFailed, failure, isFailure } from "#cli/client/failure.ts"
import { fromJson, type Json, toJson } from "#cli/client/json.ts"
import type { Method, Need } from "#cli/client/operation.ts"
import { readAll } from "#cli/client/read-all.ts"

/**
 * Node's client for this URL. Loaded on demand: importing node:https would load TLS for every
 * command, and node:http would load fetch, which takes as long as everything else.
 */
const clientOf = (url: string) =>
  url.startsWith("https:")
    ? process.getBuiltinModule("node:https")
    : process.getBuiltinModule("node:http")

/** Idle timeout of a connection, in ms: the server's own deadline is 60 s. */
const silence_ms_max = 90_000

/** Attempts while the server responds 503 or 504: 12.7 s of waiting without Retry-After. */
const attempts_max = 8
const retry_ms_first = 100
const retry_ms_max = 30_000

/** Maximum size of a buffered response, in bytes: a page of 1000 items of maximum size. */
const response_bytes_max = 64 * 2 ** 20

export interface HttpRequest {
  readonly method: Method
  /** Relative to the server's URL, with the query. */
  readonly path: string
  readonly need: Need
  readonly headers?: Readonly<Record<string, string>>
  /** A body, or a function that creates a new stream for each attempt. */
  readonly body?: string | Uint8Array | (() => Readable)
  readonly is_repeatable?: boolean
  /** Idle timeout in ms; the default is `silence_ms_max`. */
  readonly silence_ms?: number
  readonly signal: AbortSignal
}

/** HTTP client of one server; `close` closes its idle connections. */
export interface Http {
  /** The response with its body unread. Throws ClientFailed on 300 and above or no response. */
  readonly open: (request: HttpRequest) => Promise<IncomingMessage>
  /** The whole response body as text, with the headers. */
  readonly text: (
    request: HttpRequest,
  ) => Promise<{ text: string; headers: IncomingMessage["headers"] }>
  /** The response as JSON, or the last line of NDJSON; null without a body. */
  readonly json: (
    request: HttpRequest,
  ) => Promise<{ body: Json; headers: IncomingMessage["headers"] }>
  readonly close: () => void
}

/** A JSON body with its content type. */
export const jsonBody = (value: Json) => ({
  body: toJson(value),
  headers: { "content-type": "application/json" },
})

/** Reads the whole body; fails if it is too long. */
const textOf = async (response: IncomingMessage) => {
  const tooLong = (reason: string) => failure("failed", `The response is ${reason}`)
  return (await readAll(response, response_bytes_max, tooLong)).toString()
}

const parsed = (text: string, request: HttpRequest) => {
  if (text === "") return null
  try {
    return fromJson(text)
  } catch {
    const what = `${request.method} ${request.path}: the response is not JSON.`
    throw failure("failed", what, "check that the address is that of an Almanac server")
  }
}

/** Waits before the next attempt: for Retry-After or the exponential backoff. */
const wait = async (attempt: number, response: IncomingMessage, signal: AbortSignal) => {
  const requested_ms = retryAfter(response.headers["retry-after"])
  const backoff_ms = Math.min(retry_ms_max, retry_ms_first * 2 ** attempt)
  const jittered_ms = backoff_ms * (0.5 + Math.random() / 2)
  const ms = Math.min(retry_ms_max, Math.max(jittered_ms, requested_ms))
  await pause(ms, undefined, { signal })
}

const isRetryable = (status: number) => status === 503 || status === 504

/** Sends the request once. Fails without a response. */
const send = async (access: Access, agent: Agent, request: HttpRequest) => {
  const { body, method, signal } = request
  const url = new URL(access.url.replace(/\/+$/, "") + request.path)
  const sent = typeof body === "function" ? undefined : body
  const headers = {
    accept: "application/json",
    ...(await access.headers(request.need, signal)),
    ...(sent !== undefined && { "content-length": String(Buffer.byteLength(sent)) }),
    ...request.headers,
  }
  const tls = url.protocol === "https:" ? access.tls : {}
  const { request: start } = clientOf(access.url)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const outgoing: ClientRequest = start(url, { method, headers, agent, signal, ...tls }, resolve)
  outgoing.on("error", reject)
  outgoing.setTimeout(request.silence_ms ?? silence_ms_max, () =>
    outgoing.destroy(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" })),
  )
  if (typeof body !== "function") outgoing.end(body)
  else {
    const source = body()
    source.on("error", (cause) => outgoing.destroy(cause))
    // A server that rejects the request early closes the connection before reading the body.
    outgoing.on("close", () => source.destroy())
    source.pipe(outgoing)
  }
  return await promise
}

/** Client of the server that `access` names. */
export const httpOf = (access: Access): Http => {
  const client = clientOf(access.url)
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED would otherwise turn it off.
  const agent = new client.Agent({ keepAlive: true, rejectUnauthorized: true })
  const failed = (cause: unknown, request: HttpRequest): ClientFailed => {
    if (request.signal.aborted) return failure("interrupted", "Interrupted.")
    if (isFailure(cause)) return cause
    return noResponseFailure(cause, access, request)
  }

  const open = async (original: HttpRequest) => {
    // One key for all attempts, so that a retry repeats no work.
    const key = original.method !== "GET" && { "idempotency-key": randomUUID() }
    const request = { ...original, headers: { ...key, ...original.headers } }
    for (let attempt = 0; ; attempt++) {
      const response = await send(access, agent, request).catch((cause: unknown) => {
        throw failed(cause, request)
      })
      const status = response.statusCode ?? 0
      if (status < 300) return response
      const is_last = attempt + 1 === attempts_max || original.is_repeatable === false
      if (is_last || !isRetryable(status)) {
        const text = await textOf(response).catch(() => "")
        const { location, "retry-after": retry_after } = response.headers
        throw responseFailure({ status, text, access, request: request, location, retry_after })
      }
      // Otherwise a body still being sent would overlap with that of the next attempt.
      if (typeof original.body === "function") response.destroy()
      else response.resume()
      await wait(attempt, response, request.signal).catch((cause: unknown) => {
        throw failed(cause, request)
      })
    }
  }
  const text = async (request: HttpRequest) => {
    const response = await open(request)
    const text = await textOf(response).catch((cause: unknown) => {
      throw failed(cause, request)
    })
    return { text, headers: response.headers }
  }
  const json = async (request: HttpRequest) => {
    const { text: found, headers } = await text(request)
    const is_lines = headers["content-type"]?.startsWith("application/x-ndjson") === true
    const last = is_lines ? (found.trimEnd().split("\n").at(-1) ?? "") : found
    return { body: parsed(last, request), headers }
  }
  return { open, text, json, close: () => agent.destroy() }
}
