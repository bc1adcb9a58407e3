/** How `almanac doctor` sends requests to a gateway. */
import { type IncomingMessage, request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { Redacted } from "effect"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { type Access, accessOf } from "#cli/client/access.ts"
import { readAll } from "#cli/client/read-all.ts"
import type { GatewayResponse, Get } from "#cli/doctor/gateway.ts"
import { pinnedTls } from "#cli/instance.ts"
import type { Settings } from "#schemas/settings.ts"

/** Timeout of a gateway's response, in milliseconds. */
export const answer_ms_max = 10_000
/** Maximum size of a response, in bytes: lists are a fraction of this. */
const response_bytes_max = 8 * 1024 * 1024

/** Sends requests to a gateway without retries, because the first response is the check. */
const getOf =
  ({ url, tls, headers }: Pick<Access, "url" | "tls" | "headers">): Get =>
  async (path) => {
    const signal = AbortSignal.timeout(answer_ms_max)
    const to = new URL(url.replace(/\/+$/, "") + path)
    const is_tls = to.protocol === "https:"
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const all_headers = { accept: "application/json", ...(await headers("admin", signal)) }
    const options = { headers: all_headers, signal, ...(is_tls ? tls : {}) }
    const sent = (is_tls ? tlsRequest : plainRequest)(to, options, resolve)
    sent.on("error", reject)
    sent.end()
    const response = await promise
    const tooLong = (why: string) => new Error(`${path}: the response is ${why}`)
    const text = (await readAll(response, response_bytes_max, tooLong)).toString()
    return { status: response.statusCode ?? 0, text } satisfies GatewayResponse
  }

/** Sends requests to the server of this data folder as its operator. */
export const byInstance = async (running: Instance, settings: Settings) => {
  const authorization = `Bearer ${Redacted.value(running.control_token)}`
  const tls = (await pinnedTls(running, settings)) ?? {}
  return getOf({ url: running.url, tls, headers: async () => ({ authorization }) })
}

/** Sends requests to a gateway by URL, with the token of the environment or a profile. */
export const byAddress = async (url: string, data_dir: string) => {
  const signal = AbortSignal.timeout(answer_ms_max)
  return getOf(await accessOf({ env: { ...process.env, ALMANAC_URL: url }, data_dir, signal }))
}
