/**
 * Answers that are given again without asking anybody, for as long as everything that they were
 * made of is as it was: what callers poll is mostly what they were told a moment ago.
 *
 * The plain route makes each of them, and what is kept is found only by the very same request of
 * the same caller, whom the identity must know at once, each time. Source: decision 0149.
 */
import { Effect, Exit } from "effect"
import { Cookies, type HttpServerResponse } from "effect/http"
import { isOpen } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import type { HotHeaders, HotRequest, HotResponse } from "#gateway/direct.ts"
import {
  anonymous,
  correlationId,
  credentialsIn,
  hasBody,
  identify,
  overRate,
} from "#gateway/door/admission.ts"
import { visitHeaders } from "#gateway/door/caching.ts"
import type { Door } from "#gateway/door/parts.ts"
import type { Visit } from "#gateway/door/visit.ts"
import type { App, Route } from "#gateway/routes.ts"
import type { Settings } from "#schemas/settings.ts"

/** Larger bodies cost more than the route that makes them: a page of jobs has some 60 KB. */
const body_bytes_max = 2 ** 20
/** All that is kept, with the requests that find it. */
const all_bytes_max = 16 * 2 ** 20
/** What an entry takes beside its texts. */
const entry_bytes = 1024

/** At most: a text has one byte or two for each character. */
const bytesOf = (held: string | Uint8Array) =>
  typeof held === "string" ? 2 * held.length : held.byteLength

/** Headers by which no answer differs: the caller stands for two, the others are of one request. */
const apart = new Set([
  "authorization",
  "x-auth-token",
  "x-request-id",
  "traceparent",
  "tracestate",
])

interface Kept {
  readonly route: Route
  /** Name, value, name, value, ... */
  readonly headers: ReadonlyArray<string>
  /** Those of them that each answer has of its own, and the place of the value. */
  readonly own: ReadonlyArray<readonly [name: string, place: number]>
  readonly body: string | Uint8Array
  readonly made_of: ReadonlyArray<unknown>
  readonly bytes: number
  /** Whether it was given again since it was last looked at for what to forget. */
  is_used: boolean
}

export interface KeptAnswers {
  /**
   * Asked as the request arrives: of what changes from then on, while it is admitted or answered,
   * its answer never is. Answers the app of this caller, whose answer is kept if it may be.
   */
  readonly keeping: (visit: Visit, route: Route) => (caller: Caller, app: App) => App
  /** Whether the request was answered; else nothing has happened to it. */
  readonly serve: (request: HotRequest, response: HotResponse, headers: HotHeaders) => boolean
}

const isSame = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>) =>
  one.length === other.length && one.every((part, place) => part === other[place])

/** Headers that each answer has of its own. */
const ownHeaders = (
  { envelope }: Pick<Route, "envelope">,
  request_id: string,
  correlation_id: string,
): Readonly<Record<string, string>> => ({
  "x-request-id": request_id,
  "x-correlation-id": correlation_id,
  ...envelope.headers(request_id),
})

/** A number for each caller: two with the same rights may still be two. */
const numbering = () => {
  const numbers = new WeakMap<Caller, number>()
  let last = 0
  return (caller: Caller) => {
    const known = numbers.get(caller)
    if (known !== undefined) return known
    last++
    numbers.set(caller, last)
    return last
  }
}

/** The whole request: no value holds a line break, no name a colon. */
const keyOf = (caller: number, url: string, headers: HotHeaders) => {
  let key = `${caller} ${url}`
  for (const name in headers) if (!apart.has(name)) key += `\n${name}:${headers[name]}`
  return key
}

/** What is kept of an answer; undefined where there is nothing, or too much. */
const keptOf = (
  response: HttpServerResponse.HttpServerResponse,
  { headers: of_visit }: Visit,
  route: Route,
  made_of: ReadonlyArray<unknown>,
  settings: Settings,
): Omit<Kept, "bytes"> | undefined => {
  const { status, body, cookies } = response
  if (status !== 200 || body._tag !== "Uint8Array" || !Cookies.isEmpty(cookies)) return undefined
  if (body.contentLength > body_bytes_max) return undefined
  const headers: Array<string> = []
  const own: Array<Kept["own"][number]> = []
  const own_names = ownHeaders(route, "", "")
  const added = visitHeaders(of_visit, !isOpen(route, settings), response)
  for (const [name, value] of Object.entries({ ...response.headers, ...added })) {
    const is_own = Object.hasOwn(own_names, name)
    if (is_own) own.push([name, headers.length + 1])
    // A value that came with the request would keep all of its text, which nothing counts.
    headers.push(name, is_own ? "" : value)
  }
  return {
    route,
    headers,
    own,
    body: body.text ?? body.body,
    made_of,
    is_used: false,
  }
}

/** Answers by what finds them, as many as have room. */
const boundedAnswers = () => {
  const answers = new Map<string, Kept>()
  let bytes = 0
  const forget = (key: string, kept: Kept) => {
    answers.delete(key)
    bytes -= kept.bytes
  }

  const keep = (key: string, kept: Kept) => {
    const before = answers.get(key)
    if (before !== undefined) forget(key, before)
    answers.set(key, kept)
    bytes += kept.bytes
    // The oldest goes, unless it was given since: then it is as one that came now.
    for (const [key, oldest] of answers) {
      if (bytes <= all_bytes_max) break
      if (!oldest.is_used) forget(key, oldest)
      else {
        oldest.is_used = false
        answers.delete(key)
        answers.set(key, oldest)
      }
    }
  }
  return { find: (key: string) => answers.get(key), keep, forget, count: () => answers.size }
}

/** Keeps answers for as long as this is held. */
export const keptAnswers = (door: Omit<Door, "kept">): KeptAnswers => {
  const answers = boundedAnswers()
  const numberOf = numbering()

  /** What the route's answers are made of now; undefined where that is not known. */
  const madeOf = ({ made_of, service }: Route): ReadonlyArray<unknown> | undefined => {
    const settings = door.settings()
    // Each request is traced where any is.
    if (settings.telemetry.otlp_url !== "") return undefined
    const shown = made_of === "shown" ? service.shown?.() : made_of && []
    return shown && [settings, door.rules(), ...shown]
  }

  const find = (caller: Caller, url: string, headers: HotHeaders) => {
    const key = keyOf(numberOf(caller), url, headers)
    const kept = answers.find(key)
    if (kept === undefined) return undefined
    const made_of = madeOf(kept.route)
    if (made_of !== undefined && isSame(made_of, kept.made_of)) return { caller, kept }
    answers.forget(key, kept)
    return undefined
  }

  /** What is kept for whoever asks, if the identity knows who that is without asking anybody. */
  const found = (request: HotRequest, headers: HotHeaders) => {
    const url = request.url ?? ""
    const is_silent = headers.authorization === undefined && headers["x-auth-token"] === undefined
    const open = is_silent ? find(anonymous, url, headers) : undefined
    if (open !== undefined) return open
    const credentials = credentialsIn({ headers, source: request }, door.transport)
    const known = identify(credentials, door.authenticate)
    if (!Exit.isExit(known)) return undefined
    // An effect that is an exit is one of its own values and errors.
    const exit = known as Exit.Exit<Caller, unknown>
    return Exit.isSuccess(exit) ? find(exit.value, url, headers) : undefined
  }

  return {
    keeping: (visit, route) => {
      const { request } = visit
      const is_kind = request.method === "GET" && !hasBody(request)
      const made_of = is_kind ? madeOf(route) : undefined
      if (made_of === undefined) return (_, app) => app
      return (caller, app) =>
        Effect.map(app, (response) => {
          const kept = keptOf(response, visit, route, made_of, door.settings())
          if (kept === undefined) return response
          const key = keyOf(numberOf(caller), request.url, request.headers)
          answers.keep(key, { ...kept, bytes: bytesOf(key) + bytesOf(kept.body) + entry_bytes })
          return response
        })
    },
    serve: (request, response, headers) => {
      if (answers.count() === 0 || request.method !== "GET" || hasBody({ headers })) return false
      const { kept, caller } = found(request, headers) ?? {}
      if (kept === undefined || caller === undefined) return false
      if (overRate(door, caller, request) !== undefined) return false
      kept.is_used = true
      const request_id = door.transport.newId()
      const own = ownHeaders(kept.route, request_id, correlationId(headers, request_id))
      const all = [...kept.headers]
      for (const [name, place] of kept.own) all[place] = own[name] ?? ""
      door.metrics.add(kept.route, 200, 0)
      response.writeHead(200, all)
      response.end(kept.body)
      return true
    },
  }
}
