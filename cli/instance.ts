/** A running instance: what it records of itself, and how an operator's command reaches it. */
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
import { runningOf } from "#adapters/health/running-settings.ts"
import { NatsServer } from "#bus"
import { byItself } from "#cli/client/own-certificate.ts"
import type { Settings } from "#schemas/settings.ts"

/** What the instance answers when something is wrong; the message is for a person. */
export class InstanceRefused extends Schema.TaggedError<InstanceRefused>()("InstanceRefused", {
  message: Schema.String,
  /** Of the answer; absent where there was none. */
  status: Schema.optionalKey(Schema.Int),
}) {}

/** What was asked for is not there, in the instance's words. */
export const isAbsence = (cause: unknown): cause is InstanceRefused =>
  cause instanceof InstanceRefused && cause.status === 404

/** What an answer of 400 or more says of itself. */
const Problem = Schema.fromJsonString(Schema.Struct({ detail: Schema.String }))

const refusal = (asked: string, status: number, answer: string) => {
  const told = Schema.decodeUnknownOption(Problem)(answer)
  const message = Option.match(told, {
    onNone: () => `${asked}: ${status} ${answer}`,
    onSome: ({ detail }) => detail,
  })
  return new InstanceRefused({ message, status })
}

/** The instance that runs on the data folder of these settings. */
export const instance = ({ data }: Settings) =>
  Effect.map(findInstance(data.dir), Option.getOrUndefined)

/** How its certificate is known where it has one: by the file that it names itself. */
export const shownBy = async ({ url, tls_cert }: Instance, { tls }: Settings) =>
  url.startsWith("https:") ? byItself(await readFile(tls_cert ?? tls.cert)) : undefined

/** Tries of a request that got no answer, or one that says to come again: 1.4 s of waiting. */
const retries_max = 3
const retry_ms_first = 200

/** No answer came, or 503 or 504. */
const isWorthAgain = ({ status }: InstanceRefused) =>
  status === undefined || status === 503 || status === 504

/**
 * The JSON answer of `path`, as text; a status of 400 or more is InstanceRefused. All tries of a
 * POST have one Idempotency-Key, so that what one did the next does not do again.
 */
export const ask = (
  running: Instance,
  settings: Settings,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
) =>
  Effect.suspend(() => {
    const key = method === "POST" ? { "idempotency-key": randomUUID() } : {}
    return Effect.retry(askOnce(running, settings, { method, path, body, key }), {
      while: isWorthAgain,
      times: retries_max,
      schedule: Schedule.exponential(retry_ms_first),
    })
  })

interface Asked {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly body: unknown
  readonly key: Readonly<Record<string, string>>
}

const askOnce = (running: Instance, settings: Settings, { method, path, body, key }: Asked) =>
  Effect.tryPromise({
    try: async () => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = {
        authorization: `Bearer ${Redacted.value(running.control_token)}`,
        accept: "application/json",
        ...key,
        ...(text !== undefined && { "content-type": "application/json" }),
      }
      const secure = await shownBy(running, settings)
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
            const answer = Buffer.concat(parts).toString()
            const status = response.statusCode ?? 0
            if (status < 400) resolve(answer)
            else reject(refusal(`${method} ${path}`, status, answer))
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

/** Records where this process is, for commands beside it, until the scope closes. */
export const announce = Effect.fnUntraced(function* (
  settings: Settings,
  url: string,
  control_token: Redacted.Redacted<string>,
) {
  const { servers, core, publisher } = yield* NatsServer
  yield* publishInstance(settings.data.dir, {
    url,
    // Named from the folder that this process was started in, which a verb's need not be.
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
    settings: runningOf(settings),
    started_at: DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis)),
  })
})
