/** A running instance: its instance file, and requests from operators' commands to it. */
import { randomUUID } from "node:crypto"
import { readFile } from "node:fs/promises"
import { request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { resolve as absolute } from "node:path"
import { Clock, DateTime, Effect, Option, Redacted, Schedule, Schema } from "effect"
import {
  findInstance,
  type Instance,
  publishInstance,
} from "#adapters/data-folder/instance-file.ts"
import { exportSettings } from "#adapters/health/running-settings.ts"
import { NatsServer } from "#bus"
import { pinnedTo } from "#cli/client/pinned-certificate.ts"
import type { Settings } from "#schemas/settings.ts"

/** The instance rejected a request or did not respond; the message is for a person. */
export class InstanceRefused extends Schema.TaggedError<InstanceRefused>()("InstanceRefused", {
  message: Schema.String,
  /** Status of the response; absent without a response. */
  status: Schema.optionalKey(Schema.Int),
}) {}

/** Whether the instance responded 404. */
export const isNotFound = (cause: unknown): cause is InstanceRefused =>
  cause instanceof InstanceRefused && cause.status === 404

/** Body of a response with status 400 or above. */
const Problem = Schema.fromJsonString(Schema.Struct({ detail: Schema.String }))

const rejection = (request_line: string, status: number, body: string) => {
  const problem = Schema.decodeUnknownOption(Problem)(body)
  const message = Option.match(problem, {
    onNone: () => `${request_line}: ${status} ${body}`,
    onSome: ({ detail }) => detail,
  })
  return new InstanceRefused({ message, status })
}

/** The instance running on the data folder of these settings. */
export const instance = ({ data }: Settings) =>
  Effect.map(findInstance(data.dir), Option.getOrUndefined)

/** Pins the instance's certificate to the file that its instance file names. */
export const pinnedTls = async ({ url, tls_cert }: Instance, { tls }: Settings) =>
  url.startsWith("https:") ? pinnedTo(await readFile(tls_cert ?? tls.cert)) : undefined

/** Retries of a request without a response, or with 503 or 504: 1.4 s of waiting in total. */
const retries_max = 3
const retry_ms_first = 200

/** No response, or 503 or 504. */
const isRetryable = ({ status }: InstanceRefused) =>
  status === undefined || status === 503 || status === 504

/**
 * Requests `path` and returns the JSON response as text. Fails with InstanceRefused on a status of
 * 400 or above. All attempts of a POST share one Idempotency-Key, so that a retry repeats no work.
 */
export const callInstance = (
  running: Instance,
  settings: Settings,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
) =>
  Effect.suspend(() => {
    const key = method === "POST" ? { "idempotency-key": randomUUID() } : {}
    return Effect.retry(callOnce(running, settings, { method, path, body, key }), {
      while: isRetryable,
      times: retries_max,
      schedule: Schedule.exponential(retry_ms_first),
    })
  })

interface InstanceCall {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly body: unknown
  readonly key: Readonly<Record<string, string>>
}

const callOnce = (
  running: Instance,
  settings: Settings,
  { method, path, body, key }: InstanceCall,
) =>
  Effect.tryPromise({
    try: async () => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = {
        authorization: `Bearer ${Redacted.value(running.control_token)}`,
        accept: "application/json",
        ...key,
        ...(text !== undefined && { "content-type": "application/json" }),
      }
      const secure = await pinnedTls(running, settings)
      const send = secure === undefined ? plainRequest : tlsRequest
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const request = send(
        new URL(path, running.url),
        { method, headers, ...secure },
        (response) => {
          const parts: Array<Buffer> = []
          response.on("data", (part) => parts.push(part))
          response.on("error", reject)
          response.on("end", () => {
            const response_text = Buffer.concat(parts).toString()
            const status = response.statusCode ?? 0
            if (status < 400) resolve(response_text)
            else reject(rejection(`${method} ${path}`, status, response_text))
          })
        },
      )
      request.on("error", reject)
      request.end(text)
      return promise
    },
    catch: (cause) =>
      cause instanceof InstanceRefused ? cause : new InstanceRefused({ message: String(cause) }),
  })

/** Publishes the instance file of this process for other commands until the scope closes. */
export const announce = Effect.fnUntraced(function* (
  settings: Settings,
  url: string,
  control_token: Redacted.Redacted<string>,
) {
  const { servers, core, publisher } = yield* NatsServer
  yield* publishInstance(settings.data.dir, {
    url,
    // Absolute: a command may run in another working directory than this process.
    ...(settings.tls.cert !== "" && { tls_cert: absolute(settings.tls.cert) }),
    nats: {
      url: servers.join(","),
      user: core.user ?? "",
      password: core.password ?? Redacted.make(""),
    },
    ...(publisher.user && publisher.password
      ? { events: { user: publisher.user, password: publisher.password } }
      : {}),
    control_token,
    pid: process.pid,
    settings: exportSettings(settings),
    started_at: DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis)),
  })
})
