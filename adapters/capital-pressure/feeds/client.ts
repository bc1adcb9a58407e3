/**
 * HTTP to publishers: polite, bounded, and sure of whom it asks.
 *
 * It says who it is, asks again with pauses of its own, and goes where it was sent only within the
 * publisher's own domain. What a failure says holds neither key nor query.
 */
import { Clock, Effect, Random, Redacted } from "effect"
import { type Agent, request as send } from "undici"
import type { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import { makePace } from "#adapters/capital-pressure/feeds/pace.ts"
import {
  bytes_max_default,
  type FeedRequest,
  feedFailed,
  type Publisher,
  publishers,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { unverifiedAgent, verifyingAgent } from "#adapters/capital-pressure/feeds/tls.ts"
import {
  exhausted,
  ofCode,
  ofStatus,
  strayed,
  type Trouble,
} from "#adapters/capital-pressure/feeds/trouble.ts"
import { readBody } from "#adapters/outside/answer-body.ts"
import { afterOf } from "#adapters/outside/retry-after.ts"

/** What a publisher gave to ask it with the next time. */
export interface Validators {
  readonly etag?: string
  readonly last_modified?: string
}

export type Reply =
  | { readonly is_unchanged: true }
  | { readonly is_unchanged: false; readonly bytes: Uint8Array; readonly validators: Validators }

export type Ask = (request: FeedRequest, known?: Validators) => Effect.Effect<Reply, FeedFailed>

/** In milliseconds. */
export interface FeedTimes {
  /** That nothing comes: before the answer, or in the middle of it. */
  readonly silence_ms: number
  /** One try, with all that is sent. */
  readonly whole_ms: number
  /** The first pause is at most this, each further one twice the one before. */
  readonly pause_ms: number
  /** Between two requests to a host, instead of the publisher's own. */
  readonly spacing_ms?: number
}

/** The slowest answer, all of a daily series since 1962, takes some seconds. */
const feed_times: FeedTimes = { silence_ms: 30_000, whole_ms: 120_000, pause_ms: 1000 }

export interface ClientOptions {
  readonly version: string
  /** Who runs this, for publishers; "" says nothing. */
  readonly contact: string
  readonly cftc_tls_verify: boolean
  /** Addresses instead of the publishers' own. */
  readonly bases?: Partial<Record<Publisher, string>>
  readonly times?: FeedTimes
}

const tries_max = 4
const pause_ms_max = 20_000
/** A publisher that wants more time than this is asked at another ingest. */
const after_ms_max = 60_000
/** How long a host that refused too many requests is left alone, where it does not say itself. */
const rest_ms = 900_000
const rest_ms_max = 86_400_000
const redirects_max = 3

/** Asks publishers for the scope's life. */
export const feedClient = Effect.fnUntraced(function* (options: ClientOptions) {
  const baseOf = (publisher: Publisher) => options.bases?.[publisher] ?? publishers[publisher].base
  const cftc_host = new URL(baseOf("cftc")).hostname
  const verifying = yield* held(() => verifyingAgent(bytes_max_default))
  const cftc = options.cftc_tls_verify
    ? verifying
    : yield* held(() => unverifiedAgent(cftc_host, bytes_max_default))
  const times = options.times ?? feed_times
  const pace = makePace()

  const ask: Ask = Effect.fnUntraced(function* (request, known = {}) {
    const { publisher } = request
    const { name } = publishers[publisher]
    const url = new URL(request.path, baseOf(publisher))
    const { host } = url
    const once = attempt({
      request,
      url,
      times,
      known,
      agent: publisher === "cftc" ? cftc : verifying,
      headers: headersOf(options, known),
    })
    const spacing_ms = times.spacing_ms ?? publishers[publisher].spacing_ms
    if (publisher === "cftc" && cftc !== verifying) yield* Effect.logInfo(unverified)
    for (let tried = 1; ; tried += 1) {
      const rest = yield* pace.restOf(host)
      if (rest > 0) return yield* failed(name, exhausted(rest))
      const answer = yield* Effect.result(pace.take(host, spacing_ms, once))
      if (answer._tag === "Success") return answer.success
      const trouble = answer.failure
      const after = trouble.after_ms ?? 0
      if (!trouble.is_passing || tried === tries_max || after > after_ms_max) {
        if (trouble.is_refusal) {
          yield* pace.rest(host, after > 0 ? Math.min(after, rest_ms_max) : rest_ms)
        }
        return yield* failed(name, trouble)
      }
      const most = Math.min(pause_ms_max, times.pause_ms * 2 ** (tried - 1))
      yield* Effect.sleep(Math.max(after, (yield* Random.next) * most))
    }
  })
  return ask
})

const unverified =
  "The CFTC is asked without verifying its certificate, and its rows are checked instead; " +
  "capital.cftc_tls_verify = true verifies it."

const held = (make: () => Agent) =>
  Effect.acquireRelease(Effect.sync(make), (agent) => Effect.promise(() => agent.destroy()))

const failed = (name: string, { reason, next }: Trouble) =>
  Effect.fail(feedFailed(name, reason, next))

const headersOf = ({ version, contact }: ClientOptions, known: Validators) => {
  // A header's value is of printable ASCII.
  const told = contact.replaceAll(/[^\x20-\x7e]/g, "").trim()
  return {
    "user-agent": told === "" ? `almanac/${version}` : `almanac/${version} (+${told})`,
    accept: "*/*",
    "accept-encoding": "gzip",
    ...(known.etag !== undefined && { "if-none-match": known.etag }),
    ...(known.last_modified !== undefined && { "if-modified-since": known.last_modified }),
  }
}

interface Attempt {
  readonly request: FeedRequest
  readonly url: URL
  readonly agent: Agent
  readonly headers: Readonly<Record<string, string>>
  readonly known: Validators
  readonly times: FeedTimes
}

const attempt = (one: Attempt): Effect.Effect<Reply, Trouble> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.tryPromise({
      try: (signal) => converse(one, now, signal),
      catch: (cause) => (isTrouble(cause) ? cause.trouble : ofCode(codeOf(cause))),
    }),
  ).pipe(
    Effect.timeoutOrElse({
      duration: one.times.whole_ms,
      orElse: () => Effect.fail(ofCode("ETIMEDOUT")),
    }),
  )

/** Follows the publisher to the answer. Throws a Troubled, or whatever the connection does. */
const converse = async (one: Attempt, now: number, signal: AbortSignal): Promise<Reply> => {
  const { request, agent, headers, times } = one
  let url = withSecret(one)
  for (let hop = 0; hop <= redirects_max; hop += 1) {
    const {
      statusCode,
      headers: told,
      body,
    } = await send(url, {
      dispatcher: agent,
      method: "GET",
      headers,
      signal,
      headersTimeout: times.silence_ms,
      bodyTimeout: times.silence_ms,
    })
    const header = (name: string) => [told[name]].flat()[0]
    if (statusCode === 200) {
      const encoding = (header("content-encoding") ?? "").trim().toLowerCase()
      const bytes = await readBody(body, encoding, request.bytes_max)
      return { is_unchanged: false, bytes, validators: validatorsOf(header) }
    }
    body.on("error", () => undefined).destroy()
    if (statusCode === 304 && isConditional(one.known)) return { is_unchanged: true }
    const location = header("location")
    if (!redirects.has(statusCode) || location === undefined) {
      throw troubled(ofStatus(statusCode, request, afterOf(header("retry-after"), now)))
    }
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined
    if (!next || !isSamePlace(one.url, next)) throw troubled(strayed(next?.hostname ?? ""))
    url = next
  }
  throw troubled(strayed(""))
}

const redirects = new Set([301, 302, 303, 307, 308])

const isConditional = ({ etag, last_modified }: Validators) =>
  etag !== undefined || last_modified !== undefined

const withSecret = ({ request: { secret }, url }: Attempt) => {
  const whole = new URL(url)
  if (secret) whole.searchParams.set(secret.name, Redacted.value(secret.value))
  return whole
}

/** Validators are kept in a file: longer ones are none. */
const validator_chars_max = 1000

const validatorsOf = (header: (name: string) => string | undefined): Validators => {
  const [etag, last_modified] = ["etag", "last-modified"].map(header)
  const fits = (value: string | undefined) =>
    value !== undefined && value.length <= validator_chars_max
  return {
    ...(fits(etag) && etag !== undefined && { etag }),
    ...(fits(last_modified) && last_modified !== undefined && { last_modified }),
  }
}

/**
 * Whether a publisher may send us there: the same protocol, port, and domain that is registered,
 * which for all of them is the last two names. An address in numbers is itself only.
 */
const isSamePlace = (asked: URL, sent: URL) =>
  asked.protocol === sent.protocol &&
  asked.port === sent.port &&
  sent.username === "" &&
  sent.password === "" &&
  domainOf(asked.hostname) === domainOf(sent.hostname)

const domainOf = (hostname: string) =>
  /^[\d.]+$|:/.test(hostname) ? hostname : hostname.split(".").slice(-2).join(".")

interface Troubled extends Error {
  readonly trouble: Trouble
}

const troubled = (trouble: Trouble): Troubled => Object.assign(new Error("feed"), { trouble })

const isTrouble = (cause: unknown): cause is Troubled =>
  cause instanceof Error && "trouble" in cause

/** What is wrong with the connection, in a word; a message might hold what was sent. */
const codeOf = (cause: unknown): string => {
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause
  return inner instanceof Error && "code" in inner ? String(inner.code) : "no connection"
}
