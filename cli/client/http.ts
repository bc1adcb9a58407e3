/**
 * One request over HTTP and its answer: bodies as streams, refusals as failures that say what to
 * do.
 *
 * Source: decisions of document 1, "retries of our own clients"; document 1 §7, document 2 §7.
 */
import { randomUUID } from "node:crypto"
import type { Agent, ClientRequest, IncomingMessage } from "node:http"
import type { Readable } from "node:stream"
import { setTimeout as pause } from "node:timers/promises"
import type { Access } from "#cli/client/access.ts"
import { type ClientFailed, failure, isFailure } from "#cli/client/failure.ts"
import { fromJson, type Json, toJson } from "#cli/client/json.ts"
import type { Method, Need } from "#cli/client/operation.ts"
import { refusal, retryAfter, unreachable } from "#cli/client/refusal.ts"
import { whole } from "#cli/client/whole.ts"

/**
 * Node's client for this address. An import of node:https would load TLS for each command, and from
 * the sources one of node:http Node's fetch, which takes as long as all the rest.
 */
const clientOf = (url: string) =>
  url.startsWith("https:")
    ? process.getBuiltinModule("node:https")
    : process.getBuiltinModule("node:http")

/** Longest silence of a connection, in ms: the server's own deadline is 60 s. */
const silence_ms_max = 90_000

/** Tries of what is answered 503 or 504: 12.7 s of waiting in all, where nobody asks for more. */
const attempts_max = 8
const retry_ms_first = 100
const retry_ms_max = 30_000

/** Longest answer that is read as a whole, in bytes: a page of 1000 items at their largest. */
const answer_bytes_max = 64 * 2 ** 20

export interface Asked {
  readonly method: Method
  /** Below the server's address, with its query. */
  readonly path: string
  readonly need: Need
  readonly headers?: Readonly<Record<string, string>>
  /** A whole body, or one that is made anew for each try; what has been read is gone. */
  readonly body?: string | Uint8Array | (() => Readable)
  readonly is_repeatable?: boolean
  /** Longest silence in ms, where it is another. */
  readonly silence_ms?: number
  readonly signal: AbortSignal
}

/** How a server is asked; `close` ends the connections that are kept. */
export interface Http {
  /** The answer, its body unread. Throws ClientFailed for 300 and above, and where none comes. */
  readonly open: (asked: Asked) => Promise<IncomingMessage>
  /** The whole answer as a text, and its headers. */
  readonly text: (asked: Asked) => Promise<{ text: string; headers: IncomingMessage["headers"] }>
  /** The answer as JSON with its headers, of lines the last; null where it has no body. */
  readonly json: (asked: Asked) => Promise<{ body: Json; headers: IncomingMessage["headers"] }>
  readonly close: () => void
}

/** JSON as a body, with the header that says so. */
export const jsonBody = (value: Json) => ({
  body: toJson(value),
  headers: { "content-type": "application/json" },
})

/** The whole body; a failure where it is longer than an answer may be. */
const textOf = async (answer: IncomingMessage) => {
  const tooLong = (reason: string) => failure("failed", `The answer is ${reason}`)
  return (await whole(answer, answer_bytes_max, tooLong)).toString()
}

const parsed = (text: string, asked: Asked) => {
  if (text === "") return null
  try {
    return fromJson(text)
  } catch {
    const what = `${asked.method} ${asked.path}: the answer is no JSON.`
    throw failure("failed", what, "check that the address is Almanac's")
  }
}

/** Waits before the next try: as long as the server asks for, or twice as long as before. */
const wait = async (attempt: number, answer: IncomingMessage, signal: AbortSignal) => {
  const asked_ms = retryAfter(answer.headers["retry-after"])
  const backoff_ms = Math.min(retry_ms_max, retry_ms_first * 2 ** attempt)
  const jittered_ms = backoff_ms * (0.5 + Math.random() / 2)
  const ms = Math.min(retry_ms_max, Math.max(jittered_ms, asked_ms))
  await pause(ms, undefined, { signal })
}

const isWorthAgain = (status: number) => status === 503 || status === 504

/** Sends it once. Fails where no answer comes. */
const send = async (access: Access, agent: Agent, asked: Asked) => {
  const { body, method, signal } = asked
  const url = new URL(access.url.replace(/\/+$/, "") + asked.path)
  const sent = typeof body === "function" ? undefined : body
  const headers = {
    accept: "application/json",
    ...(await access.headers(asked.need, signal)),
    ...(sent !== undefined && { "content-length": String(Buffer.byteLength(sent)) }),
    ...asked.headers,
  }
  const tls = url.protocol === "https:" ? access.tls : {}
  const { request: start } = clientOf(access.url)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request: ClientRequest = start(url, { method, headers, agent, signal, ...tls }, resolve)
  request.on("error", reject)
  request.setTimeout(asked.silence_ms ?? silence_ms_max, () =>
    request.destroy(Object.assign(new Error("no answer in time"), { code: "ETIMEDOUT" })),
  )
  if (typeof body !== "function") request.end(body)
  else {
    const source = body()
    source.on("error", (cause) => request.destroy(cause))
    // A server that refuses in the middle of a body closes what it does not want to read.
    request.on("close", () => source.destroy())
    source.pipe(request)
  }
  return await promise
}

/** A client of the server that `access` names. */
export const httpOf = (access: Access): Http => {
  const client = clientOf(access.url)
  // Said outright: a variable of Node's (NODE_TLS_REJECT_UNAUTHORIZED) would turn it off.
  const agent = new client.Agent({ keepAlive: true, rejectUnauthorized: true })
  const failed = (cause: unknown, asked: Asked): ClientFailed => {
    if (asked.signal.aborted) return failure("interrupted", "Interrupted.")
    if (isFailure(cause)) return cause
    return unreachable(cause, access, asked)
  }

  const open = async (given: Asked) => {
    // One key for all tries, so that what was done by one is not done by the next.
    const key = given.method !== "GET" && { "idempotency-key": randomUUID() }
    const asked = { ...given, headers: { ...key, ...given.headers } }
    for (let attempt = 0; ; attempt++) {
      const answer = await send(access, agent, asked).catch((cause: unknown) => {
        throw failed(cause, asked)
      })
      const status = answer.statusCode ?? 0
      if (status < 300) return answer
      const is_last = attempt + 1 === attempts_max || given.is_repeatable === false
      if (is_last || !isWorthAgain(status)) {
        const text = await textOf(answer).catch(() => "")
        const { location, "retry-after": retry_after } = answer.headers
        throw refusal({ status, text, access, asked, location, retry_after })
      }
      // A body that is still being sent would go on beside that of the next try.
      if (typeof given.body === "function") answer.destroy()
      else answer.resume()
      await wait(attempt, answer, asked.signal).catch((cause: unknown) => {
        throw failed(cause, asked)
      })
    }
  }
  const text = async (asked: Asked) => {
    const answer = await open(asked)
    const text = await textOf(answer).catch((cause: unknown) => {
      throw failed(cause, asked)
    })
    return { text, headers: answer.headers }
  }
  const json = async (asked: Asked) => {
    const { text: found, headers } = await text(asked)
    const is_lines = headers["content-type"]?.startsWith("application/x-ndjson") === true
    const last = is_lines ? (found.trimEnd().split("\n").at(-1) ?? "") : found
    return { body: parsed(last, asked), headers }
  }
  return { open, text, json, close: () => agent.destroy() }
}
