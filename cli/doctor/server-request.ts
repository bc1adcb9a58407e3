/** How `almanac doctor` sends requests to a gateway. */
import { type IncomingMessage, request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { Redacted } from "effect"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { type Access, accessOf } from "#cli/client/access.ts"
import { readAll } from "#cli/client/read-all.ts"
import type { Answered, Get } from "#cli/doctor/gateway.ts"
import { pinnedTls } from "#cli/instance.ts"
import type { Settings } from "#schemas/settings.ts"

/** A gateway that does not answer within this does not serve, in milliseconds. */
export const answer_ms_max = 10_000
/** A list of read models, nodes or webhooks is a fraction of this, in bytes. */
const answer_bytes_max = 8 * 1024 * 1024

/** Requests to a gateway: none is retried, since the check is how the first one is answered. */
const getOf =
  ({ url, tls, headers }: Pick<Access, "url" | "tls" | "headers">): Get =>
  async (path) => {
    const signal = AbortSignal.timeout(answer_ms_max)
    const to = new URL(url.replace(/\/+$/, "") + path)
    const is_tls = to.protocol === "https:"
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const known = { accept: "application/json", ...(await headers("admin", signal)) }
    const options = { headers: known, signal, ...(is_tls ? tls : {}) }
    const sent = (is_tls ? tlsRequest : plainRequest)(to, options, resolve)
    sent.on("error", reject)
    sent.end()
    const answer = await promise
    const tooLong = (why: string) => new Error(`${path}: the answer is ${why}`)
    const text = (await readAll(answer, answer_bytes_max, tooLong)).toString()
    return { status: answer.statusCode ?? 0, text } satisfies Answered
  }

/** Requests to the server of this folder, as its operator. */
export const byInstance = async (running: Instance, settings: Settings) => {
  const authorization = `Bearer ${Redacted.value(running.control_token)}`
  const tls = (await pinnedTls(running, settings)) ?? {}
  return getOf({ url: running.url, tls, headers: async () => ({ authorization }) })
}

/** The gateway at an address, with the token that the environment or a profile has. */
export const byAddress = async (url: string, data_dir: string) => {
  const signal = AbortSignal.timeout(answer_ms_max)
  return getOf(await accessOf({ env: { ...process.env, ALMANAC_URL: url }, data_dir, signal }))
}
