/** An HTTP client that returns the exact response, or reports that there was none. */
import { Agent, type IncomingHttpHeaders, request } from "node:http"

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** No response arrived, so the request may or may not have taken effect. */
export class NoAnswer extends Error {}

export interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
}

/** Client timeout; the server's own deadline is shorter. */
const answer_ms_max = 90_000

/** The response as text for error messages. */
const text_chars_max = 500
export const responseText = ({ status, body }: Answer) =>
  `${status} ${body.toString("utf8", 0, text_chars_max)}`

/** A client with its own connections, kept open until `close`. */
export const connect = (url: string, token: string, wait_ms = answer_ms_max) => {
  const agent = new Agent({ keepAlive: true })
  const authorization = `Bearer ${token}`

  /** The complete response; NoAnswer if the connection ended earlier. */
  const ask = (method: string, path: string, { headers = {}, body }: Asked = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const failed = (cause: Error) => reject(new NoAnswer(`${method} ${path}: ${cause.message}`))
      const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
      const options = { method, agent, headers: { authorization, ...length, ...headers } }
      const sent = request(new URL(path, url), options, (response) => {
        const parts: Array<Buffer> = []
        response.on("data", (part: Buffer) => parts.push(part))
        response.on("error", failed)
        response.on("end", () => {
          const { statusCode: status = 0, headers, complete } = response
          if (complete) resolve({ status, headers, body: Buffer.concat(parts) })
          else failed(new Error("cut off"))
        })
      })
      sent.setTimeout(wait_ms, () => sent.destroy(new Error("no answer in time")))
      sent.on("error", failed)
      sent.end(body)
    })

  /** The JSON of a response, which must be 200. */
  const json = async <A>(method: string, path: string, value?: unknown, headers = {}) => {
    const body = value === undefined ? undefined : JSON.stringify(value)
    const type = body === undefined ? {} : { "content-type": "application/json" }
    const init = { headers: { ...type, ...headers }, ...(body !== undefined && { body }) }
    const answer = await ask(method, path, init)
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${responseText(answer)}`)
    return JSON.parse(answer.body.toString()) as A
  }
  return { url, authorization, ask, json, close: () => agent.destroy() }
}

export type Client = ReturnType<typeof connect>
