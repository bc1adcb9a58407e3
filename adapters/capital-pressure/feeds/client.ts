/**
 * The HTTP client for publishers.
 *
 * It identifies itself, retries with backoff, and follows redirects only within the publisher's
 * domain. Failures contain neither keys nor queries.
 */
import { Clock, Effect, Random, Redacted } from "effect"
import { type Agent, request as send } from "undici"
import type { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import {
  connectionFailure,
  pausedFailure,
  type RequestFailure,
  redirectFailure,
  statusFailure,
} from "#adapters/capital-pressure/feeds/failure.ts"
import { makePace } from "#adapters/capital-pressure/feeds/pace.ts"
import {
  bytes_max_default,
  type FeedRequest,
  feedFailed,
  type Publisher,
  publishers,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { unverifiedAgent, verifyingAgent } from "#adapters/capital-pressure/feeds/tls.ts"
import { readBody } from "#adapters/outside/response-body.ts"
import { retryAfterOf } from "#adapters/outside/retry-after.ts"

/** Validators for a conditional request. */
export interface Validators {
  readonly etag?: string
  readonly last_modified?: string
}

export type Reply =
  | { readonly is_unchanged: true }
  | { readonly is_unchanged: false; readonly bytes: Uint8Array; readonly validators: Validators }

export type Download = (
  request: FeedRequest,
  known?: Validators,
) => Effect.Effect<Reply, FeedFailed>

/** In milliseconds. */
export interface FeedTimes {
  /** The timeout for headers and between body chunks. */
  readonly idle_ms: number
  /** The timeout of one attempt. */
  readonly attempt_ms: number
  /** The maximum first backoff; doubles with each attempt. */
  readonly pause_ms: number
  /** Overrides the publisher's spacing between requests. */
  readonly spacing_ms?: number
}

/** The slowest response, a daily series since 1962, takes several seconds. */
const feed_times: FeedTimes = { idle_ms: 30_000, attempt_ms: 120_000, pause_ms: 1000 }

export interface ClientOptions {
  readonly version: string
  /** The operator's contact for the User-Agent; may be empty. */
  readonly contact: string
  readonly cftc_tls_verify: boolean
  /** Overrides the publishers' addresses. */
  readonly bases?: Partial<Record<Publisher, string>>
  readonly times?: FeedTimes
}

const attempts_max = 4
const pause_ms_max = 20_000
/** A longer Retry-After is left to the next ingest. */
const retry_after_ms_max = 60_000
/** The pause of a host that rejects requests without Retry-After. */
const host_pause_ms = 900_000
const host_pause_ms_max = 86_400_000
const redirects_max = 3

/** Creates the client; its connections close with the scope. */
export const feedClient = Effect.fnUntraced(function* (options: ClientOptions) {
  const baseOf = (publisher: Publisher) => options.bases?.[publisher] ?? publishers[publisher].base
  const cftc_host = new URL(baseOf("cftc")).hostname
  const verifying_agent = yield* scopedAgent(() => verifyingAgent(bytes_max_default))
  const cftc_agent = options.cftc_tls_verify
    ? verifying_agent
    : yield* scopedAgent(() => unverifiedAgent(cftc_host, bytes_max_default))
  const times = options.times ?? feed_times
  const pace = makePace()

  const download: Download = Effect.fnUntraced(function* (request, known = {}) {
    const { publisher } = request
    const { name } = publishers[publisher]
    const url = new URL(request.path, baseOf(publisher))
    const { host } = url
    const once = attempt({
      request,
      url,
      times,
      known,
      agent: publisher === "cftc" ? cftc_agent : verifying_agent,
      headers: headersOf(options, known),
    })
    const spacing_ms = times.spacing_ms ?? publishers[publisher].spacing_ms
    if (publisher === "cftc" && cftc_agent !== verifying_agent)
      yield* Effect.logInfo(unverified_notice)
    for (let attempts = 1; ; attempts += 1) {
      const pause = yield* pace.pauseOf(host)
      if (pause > 0) return yield* failed(name, pausedFailure(pause))
      const result = yield* Effect.result(pace.run(host, spacing_ms, once))
      if (result._tag === "Success") return result.success
      const failure = result.failure
      const retry_after_ms = failure.after_ms ?? 0
      if (
        !failure.is_temporary ||
        attempts === attempts_max ||
        retry_after_ms > retry_after_ms_max
      ) {
        if (failure.is_rejection) {
          yield* pace.pause(
            host,
            retry_after_ms > 0 ? Math.min(retry_after_ms, host_pause_ms_max) : host_pause_ms,
          )
        }
        return yield* failed(name, failure)
      }
      const backoff_ms_max = Math.min(pause_ms_max, times.pause_ms * 2 ** (attempts - 1))
      yield* Effect.sleep(Math.max(retry_after_ms, (yield* Random.next) * backoff_ms_max))
    }
  })
  return download
})

const unverified_notice =
  "The CFTC's certificate is not verified, and its rows are checked instead; " +
  "set capital.cftc_tls_verify = true to verify it."

const scopedAgent = (make: () => Agent) =>
  Effect.acquireRelease(Effect.sync(make), (agent) => Effect.promise(() => agent.destroy()))

const failed = (name: string, { reason, next }: RequestFailure) =>
  Effect.fail(feedFailed(name, reason, next))

const headersOf = ({ version, contact }: ClientOptions, known: Validators) => {
  // Header values are printable ASCII.
  const contact_text = contact.replaceAll(/[^\x20-\x7e]/g, "").trim()
  return {
    "user-agent":
      contact_text === "" ? `almanac/${version}` : `almanac/${version} (+${contact_text})`,
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

const attempt = (one: Attempt): Effect.Effect<Reply, RequestFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.tryPromise({
      try: (signal) => sendRequest(one, now, signal),
      catch: (cause) => (isFailedAttempt(cause) ? cause.failure : connectionFailure(codeOf(cause))),
    }),
  ).pipe(
    Effect.timeoutOrElse({
      duration: one.times.attempt_ms,
      orElse: () => Effect.fail(connectionFailure("ETIMEDOUT")),
    }),
  )

/** Sends the request and follows redirects. Throws a FailedAttempt or a connection error. */
const sendRequest = async (one: Attempt, now: number, signal: AbortSignal): Promise<Reply> => {
  const { request, agent, headers, times } = one
  let url = withSecret(one)
  for (let hop = 0; hop <= redirects_max; hop += 1) {
    const {
      statusCode,
      headers: response_headers,
      body,
    } = await send(url, {
      dispatcher: agent,
      method: "GET",
      headers,
      signal,
      headersTimeout: times.idle_ms,
      bodyTimeout: times.idle_ms,
    })
    const header = (name: string) => [response_headers[name]].flat()[0]
    if (statusCode === 200) {
      const encoding = (header("content-encoding") ?? "").trim().toLowerCase()
      const bytes = await readBody(body, encoding, request.bytes_max)
      return { is_unchanged: false, bytes, validators: validatorsOf(header) }
    }
    body.on("error", () => undefined).destroy()
    if (statusCode === 304 && isConditional(one.known)) return { is_unchanged: true }
    const location = header("location")
    if (!redirects.has(statusCode) || location === undefined) {
      throw failedAttempt(
        statusFailure(statusCode, request, retryAfterOf(header("retry-after"), now)),
      )
    }
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined
    if (!next || !isAllowedRedirect(one.url, next))
      throw failedAttempt(redirectFailure(next?.hostname ?? ""))
    url = next
  }
  throw failedAttempt(redirectFailure(""))
}

const redirects = new Set([301, 302, 303, 307, 308])

const isConditional = ({ etag, last_modified }: Validators) =>
  etag !== undefined || last_modified !== undefined

const withSecret = ({ request: { secret }, url }: Attempt) => {
  const url_with_secret = new URL(url)
  if (secret) url_with_secret.searchParams.set(secret.name, Redacted.value(secret.value))
  return url_with_secret
}

/** Longer validators are not stored. */
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
 * Whether a redirect is allowed: same protocol, port and registered domain, which is the last two
 * labels for all publishers. An IP address must be equal.
 */
const isAllowedRedirect = (from_url: URL, to_url: URL) =>
  from_url.protocol === to_url.protocol &&
  from_url.port === to_url.port &&
  to_url.username === "" &&
  to_url.password === "" &&
  domainOf(from_url.hostname) === domainOf(to_url.hostname)

const domainOf = (hostname: string) =>
  /^[\d.]+$|:/.test(hostname) ? hostname : hostname.split(".").slice(-2).join(".")

interface FailedAttempt extends Error {
  readonly failure: RequestFailure
}

const failedAttempt = (failure: RequestFailure): FailedAttempt =>
  Object.assign(new Error("feed"), { failure })

const isFailedAttempt = (cause: unknown): cause is FailedAttempt =>
  cause instanceof Error && "failure" in cause

/** The code of a connection error. Its message might contain the request. */
const codeOf = (cause: unknown): string => {
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause
  return inner instanceof Error && "code" in inner ? String(inner.code) : "no connection"
}
