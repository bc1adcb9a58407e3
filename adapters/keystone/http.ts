/**
 * HTTP to the services of an OpenStack cloud: bounded in time, bytes and connections. It follows no
 * redirect, so that a token goes nowhere but where the catalogue says.
 */
import { Agent, request } from "@effect/platform-node/Undici"
import { Effect, Redacted, Schema } from "effect"
import { readBounded } from "#files"
import { IdentityUnavailable } from "#gateway/identity.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"

type Secret = Redacted.Redacted<string>

/** One request. Its token and subject are headers, and go into no message. */
export interface Call {
  /** As a person knows the service, for what is said of a failure. */
  readonly service: "Keystone" | "Barbican" | "Manila" | "Nova" | "Glance"
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly url: string
  readonly token?: Secret
  /** X-Subject-Token: the token that is asked about. */
  readonly subject?: Secret
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** A POST that may be sent twice; every other method may. */
  readonly is_repeatable?: boolean
}

/** Whatever the service said, an error as well. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
}

export type Ask = (call: Call) => Effect.Effect<Answer, BackendUnavailable>

/** The system's authorities are about 220 KB. */
const ca_bytes_max = 2 ** 22
/** A thousand shares in full were 1.6 MB. */
const answer_bytes_max = 2 ** 24
const connect_ms_max = 5000
/** Barbican took 3.5 s to say that Keystone is down; a busy Keystone about 1 s for a token. */
const answer_ms_max = 20_000
/** To one address; more wait for their turn within their time. */
const connections_max = 16

/** Asks with the authorities of `cafile`, the system's where it is "", for the scope's life. */
export const asking = Effect.fnUntraced(function* (cafile: string) {
  const ca = cafile === "" ? undefined : yield* authorities(cafile)
  const agent = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Agent({
          connections: connections_max,
          maxResponseSize: answer_bytes_max,
          connect: { timeout: connect_ms_max, ...(ca !== undefined && { ca }) },
        }),
    ),
    (agent) => Effect.promise(() => agent.destroy()),
  )
  const ask: Ask = (call) => {
    const once = attempt(agent, call)
    const is_repeatable = call.is_repeatable ?? call.method !== "POST"
    return Effect.catch(once, (first) =>
      is_repeatable && dropped.has(first.code)
        ? Effect.mapError(once, (second) => unavailable(call, second))
        : Effect.fail(unavailable(call, first)),
    )
  }
  return ask
})

const authorities = (cafile: string) =>
  Effect.mapError(
    readBounded(cafile, ca_bytes_max),
    ({ message }) => new IdentityUnavailable({ message: `keystone_authtoken.cafile: ${message}` }),
  )

/** A connection that the service closed while it was idle: asking again is the cure. */
const dropped = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"])

interface NoAnswer {
  readonly code: string
}

const attempt = (agent: Agent, call: Call): Effect.Effect<Answer, NoAnswer> =>
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
    catch: (cause): NoAnswer => ({ code: codeOf(cause) }),
  }).pipe(
    Effect.timeoutOrElse({
      duration: answer_ms_max,
      orElse: () => Effect.fail({ code: `no answer within ${answer_ms_max / 1000} s` }),
    }),
  )

/** What is wrong with the connection, in a word; a message might hold what was sent. */
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

const unavailable = ({ service }: Call, { code }: NoAnswer) =>
  new BackendUnavailable({ detail: `${service} cannot be reached: ${code}.` })

/** The failure of a call whose answer is none that we know what to do with. */
export const unexpected = ({ service }: Pick<Call, "service">, { status }: Answer) =>
  new BackendUnavailable({ detail: `${service} answered ${status}.` })

/** The answer's JSON by its schema; what is not of that shape is the service's failure. */
export const decoded = <A>(
  schema: Schema.Decoder<A>,
  call: Pick<Call, "service">,
  answer: Answer,
): Effect.Effect<A, BackendUnavailable> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(
      Buffer.from(answer.bytes).toString("utf8"),
    ),
    () => new BackendUnavailable({ detail: `${call.service} answered what is not understood.` }),
  )
