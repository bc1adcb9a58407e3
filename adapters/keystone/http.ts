/**
 * An HTTP client for the services of an OpenStack cloud, with limits on time, sizes and
 * connections. It does not follow redirects, so that tokens go only to the catalogue's endpoints.
 */
import { Agent, request } from "@effect/platform-node/Undici"
import { Effect, Redacted, Schema } from "effect"
import { readBounded } from "#files"
import { IdentityUnavailable } from "#gateway/identity.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"

type Secret = Redacted.Redacted<string>

/** A request. Its token and subject are headers and do not appear in messages. */
export interface Call {
  /** The service's name for messages. */
  readonly service: "Keystone" | "Barbican" | "Manila" | "Nova" | "Glance"
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly url: string
  readonly token?: Secret
  /** X-Subject-Token: the token that the request is about. */
  readonly subject?: Secret
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Whether a POST may be retried; other methods always may. */
  readonly is_repeatable?: boolean
}

/** Any response, including errors. */
export interface CloudResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
}

export type SendCall = (call: Call) => Effect.Effect<CloudResponse, BackendUnavailable>

/** The system's CA certificates are about 220 KB. */
const ca_bytes_max = 2 ** 22
/** A thousand detailed shares are 1.6 MB. */
const response_bytes_max = 2 ** 24
const connect_ms_max = 5000
/**
 * Barbican takes 3.5 s to report that Keystone is down; a busy Keystone takes 1 s to issue a token.
 */
const response_ms_max = 20_000
/** Per host; further requests wait, which counts towards their timeout. */
const connections_max = 16

/**
 * Creates a client that trusts the certificates in `cafile`, or the system's if it is "". Its
 * connections close with the scope.
 */
export const cloudClient = Effect.fnUntraced(function* (cafile: string) {
  const ca = cafile === "" ? undefined : yield* authorities(cafile)
  const agent = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Agent({
          connections: connections_max,
          maxResponseSize: response_bytes_max,
          connect: { timeout: connect_ms_max, ...(ca !== undefined && { ca }) },
        }),
    ),
    (agent) => Effect.promise(() => agent.destroy()),
  )
  const send: SendCall = (call) => {
    const once = attempt(agent, call)
    const is_repeatable = call.is_repeatable ?? call.method !== "POST"
    return Effect.catch(once, (first) =>
      is_repeatable && connection_lost.has(first.code)
        ? Effect.mapError(once, (second) => unavailable(call, second))
        : Effect.fail(unavailable(call, first)),
    )
  }
  return send
})

const authorities = (cafile: string) =>
  Effect.mapError(
    readBounded(cafile, ca_bytes_max),
    ({ message }) => new IdentityUnavailable({ message: `keystone_authtoken.cafile: ${message}` }),
  )

/** The service closed an idle connection, so the request may be retried. */
const connection_lost = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"])

interface ConnectionFailure {
  readonly code: string
}

const attempt = (agent: Agent, call: Call): Effect.Effect<CloudResponse, ConnectionFailure> =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await request(call.url, {
        dispatcher: agent,
        signal,
        method: call.method,
        headers: headersOf(call),
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
      })
      const bytes = await response.body.bytes()
      return { status: response.statusCode, headers: single(response.headers), bytes }
    },
    catch: (cause): ConnectionFailure => ({ code: codeOf(cause) }),
  }).pipe(
    Effect.timeoutOrElse({
      duration: response_ms_max,
      orElse: () => Effect.fail({ code: `no response within ${response_ms_max / 1000} s` }),
    }),
  )

/** The code of a connection error; the message might contain what was sent. */
const codeOf = (cause: unknown): string => {
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause
  return inner instanceof Error && "code" in inner ? String(inner.code) : "no connection"
}

const headersOf = ({ token, subject, headers, body }: Call) => ({
  accept: "application/json",
  ...(body !== undefined && { "content-type": "application/json" }),
  ...(token !== undefined && { "x-auth-token": Redacted.value(token) }),
  ...(subject !== undefined && { "x-subject-token": Redacted.value(subject) }),
  ...headers,
})

const single = (headers: Readonly<Record<string, string | Array<string> | undefined>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value].flat()[0] ?? ""] as const),
  )

const unavailable = ({ service }: Call, { code }: ConnectionFailure) =>
  new BackendUnavailable({ detail: `${service} cannot be reached: ${code}.` })

/** The failure of an unexpected response. */
export const unexpected = ({ service }: Pick<Call, "service">, { status }: CloudResponse) =>
  new BackendUnavailable({ detail: `${service} returned status ${status}.` })

/** Decodes a response's JSON; invalid JSON is the service's failure. */
export const decodeResponse = <A>(
  schema: Schema.Decoder<A>,
  call: Pick<Call, "service">,
  response: CloudResponse,
): Effect.Effect<A, BackendUnavailable> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(
      Buffer.from(response.bytes).toString("utf8"),
    ),
    () => new BackendUnavailable({ detail: `${call.service} returned an unexpected response.` }),
  )
