/** Asking a running instance, as its operator. */
import { readFile } from "node:fs/promises"
import { request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { Effect, Option, Redacted, Schema } from "effect"
import { findInstance, type Instance } from "#adapters/instance-file.ts"
import { byItself } from "#client/own-certificate.ts"
import type { Settings } from "#schemas/settings.ts"

/** What the instance answers when something is wrong; the message is for a person. */
export class InstanceRefused extends Schema.TaggedError<InstanceRefused>()("InstanceRefused", {
  message: Schema.String,
}) {}

/** The instance that runs on the data folder of these settings. */
export const instance = ({ data }: Settings) =>
  Effect.map(findInstance(data.dir), Option.getOrUndefined)

/** The JSON answer of `path`, as text; a status of 400 or more is InstanceRefused. */
export const ask = (
  { url, control_token }: Instance,
  { tls }: Settings,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
) =>
  Effect.tryPromise({
    try: async () => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = {
        authorization: `Bearer ${Redacted.value(control_token)}`,
        accept: "application/json",
        ...(text !== undefined && { "content-type": "application/json" }),
      }
      const secure = url.startsWith("https:") && byItself(await readFile(tls.cert))
      const send = secure ? tlsRequest : plainRequest
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const request = send(new URL(path, url), { method, headers, ...secure }, (response) => {
        const parts: Array<Buffer> = []
        response.on("data", (part) => parts.push(part))
        response.on("error", reject)
        response.on("end", () => {
          const answer = Buffer.concat(parts).toString()
          const status = response.statusCode ?? 0
          if (status < 400) resolve(answer)
          else reject(new Error(`${method} ${path}: ${status} ${answer}`))
        })
      })
      request.on("error", reject)
      request.end(text)
      return promise
    },
    catch: (cause) => new InstanceRefused({ message: String(cause) }),
  })
