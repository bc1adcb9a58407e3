/**
 * The registry over FMCSA's QCMobile API: one request per docket number.
 *
 * The web key is in the URL of requests and nowhere else, so failures have our own messages.
 *
 * Source: document 3 §1 B; market facts B1 and B2.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import { Agent, request as send } from "undici"
import { makeEngine } from "#actors/carrier-search/engine.ts"
import { type Lookup, LookupFailed } from "#actors/carrier-search/lookup.ts"
import { Registry } from "#actors/carrier-search/registry.ts"
import { failure, readResponse } from "#adapters/carrier-search/response.ts"
import { readBody } from "#adapters/outside/response-body.ts"
import { retryAfterOf } from "#adapters/outside/retry-after.ts"
import type { Source } from "#schemas/carrier-search/source.ts"

export interface RegistryFmcsaOptions {
  /** `https://host/qc/services`, without a query. */
  readonly url: string
  readonly web_key: Redacted.Redacted<string>
  /** The version in the User-Agent. */
  readonly version: string
  /** The limit on concurrent requests. */
  readonly concurrency: number
  /** The limit on requests per second; 0 for no limit. */
  readonly rate_per_second: number
  /** The timeout of one request. */
  readonly timeout_seconds: number
  /** Maximum attempts per number. */
  readonly tries: number
  /** The retry budget of a search, in percent of its numbers. */
  readonly retry_percent: number
  /** How long responses are cached; 0 disables the cache. */
  readonly cache_seconds: number
}

/** The size limit of a response; usually a few kilobytes. */
const bytes_max = 4 * 1024 * 1024
const redirects_max = 2
/** Idle connections are closed before servers close them. */
const idle_ms = 4000

/** The registry as a layer, whose release ends all requests. */
export const registryFmcsa = (options: RegistryFmcsaOptions): Layer.Layer<Registry> =>
  Layer.effect(
    Registry,
    Effect.gen(function* () {
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => agentOf(options)),
        (open_agent) => Effect.promise(() => open_agent.destroy()),
      )
      const engine = yield* makeEngine({ ...options, lookup: lookupOf(options, agent) })
      const source = Effect.map(engine.health, ({ concurrency, ...last }): Source => {
        const detail = last.detail ?? currentError(last)
        return {
          registry: "fmcsa",
          is_healthy: detail === null,
          detail,
          concurrency,
          carriers: null,
          dockets: null,
          as_of: null,
          imported_at: null,
          is_demo: false,
          last_answer_at: instant(last.last_answer_at),
          last_error_at: instant(last.last_error_at),
          last_error: last.last_error,
        }
      })
      return { search: engine.search, source }
    }),
  )

/** The last error, if there was no successful response since. */
const currentError = (last: {
  readonly last_answer_at: number | null
  readonly last_error_at: number | null
  readonly last_error: string | null
}) => ((last.last_error_at ?? 0) > (last.last_answer_at ?? 0) ? last.last_error : null)

const agentOf = ({ concurrency, timeout_seconds }: RegistryFmcsaOptions) =>
  new Agent({
    connections: concurrency,
    pipelining: 1,
    keepAliveTimeout: idle_ms,
    allowH2: false,
    connect: { timeout: timeout_seconds * 1000, rejectUnauthorized: true },
    maxResponseSize: bytes_max,
  })

const instant = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const lookupOf = (options: RegistryFmcsaOptions, agent: Agent): Lookup => {
  const base = options.url.replace(/\/+$/, "")
  const headers = {
    accept: "application/json",
    "accept-encoding": "gzip",
    "user-agent": `almanac/${options.version}`,
  }
  const timeout_failure = failure(
    "busy",
    `timeout, no response from FMCSA within ${options.timeout_seconds} s`,
  )
  return (mc) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.tryPromise({
        try: async (signal) => {
          const url = new URL(`${base}/carriers/docket-number/${mc}`)
          url.searchParams.set("webKey", Redacted.value(options.web_key))
          return sendRequest(url, { agent, headers, signal, now })
        },
        catch: (cause) =>
          cause instanceof LookupFailed ? cause : connectionFailure(codeOf(cause), timeout_failure),
      }),
    ).pipe(
      Effect.timeoutOrElse({
        duration: options.timeout_seconds * 1000,
        orElse: () => Effect.fail(timeout_failure),
      }),
      Effect.flatMap((read) =>
        read instanceof LookupFailed ? Effect.fail(read) : Effect.succeed(read),
      ),
    )
}

interface RequestContext {
  readonly agent: Agent
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly now: number
}

/** Sends the request and follows redirects within the host. Throws connection errors. */
const sendRequest = async (requested: URL, { agent, headers, signal, now }: RequestContext) => {
  let url = requested
  for (let hop = 0; hop <= redirects_max; hop += 1) {
    const response = await send(url, { dispatcher: agent, method: "GET", headers, signal })
    const header = (name: string) => [response.headers[name]].flat()[0]
    const location = header("location")
    if (!redirects.has(response.statusCode) || location === undefined) {
      const encoding = (header("content-encoding") ?? "").trim().toLowerCase()
      const bytes = await readBody(response.body, encoding, bytes_max)
      const after_ms = retryAfterOf(header("retry-after"), now)
      return readResponse({ status: response.statusCode, text: utf8.decode(bytes), after_ms })
    }
    response.body.on("error", () => undefined).destroy()
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined
    if (next?.origin !== requested.origin || next.username !== "") return redirect_failure
    url = next
  }
  return redirect_failure
}

const utf8 = new TextDecoder()

const redirects = new Set([301, 302, 303, 307, 308])

const redirect_failure = failure(
  "final",
  "FMCSA redirects to another address; check carrier.registry_url",
)

/** Maps a connection error by its code; the message might contain the URL and so the key. */
const connectionFailure = (code: string, timeout_failure: LookupFailed): LookupFailed => {
  if (code === "TOO_LARGE" || code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") {
    return failure("broken", "FMCSA returned more than 4 MiB for one number")
  }
  if (code === "BAD_ENCODING" || code.startsWith("Z_") || code.startsWith("HPE_")) {
    return failure("broken", "FMCSA returned an unreadable response")
  }
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return timeout_failure
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return failure("busy", "the name of FMCSA's host cannot be resolved; check the network")
  }
  if (code === "ECONNREFUSED") {
    return failure("busy", "FMCSA cannot be reached, the connection was refused")
  }
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|UNTRUSTED/.test(code)) {
    return failure("final", "FMCSA's certificate cannot be verified; check for a proxy in between")
  }
  return failure("busy", "FMCSA cannot be reached, or closed the connection")
}

const codeOf = (cause: unknown): string => {
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause
  return inner instanceof Error && "code" in inner ? String(inner.code) : "no connection"
}
