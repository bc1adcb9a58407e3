/**
 * Records HTTP responses as text that is the same on every run: placeholders replace ids, dates and
 * lengths. A success keeps the shape of its body, an error its full text.
 */
import { Agent, request } from "node:http"
import { connect } from "node:net"
import { setTimeout as pause } from "node:timers/promises"

export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Sends the body in chunks, without a Content-Length. */
  readonly is_chunked?: boolean
  /** Receives the response body unchanged. */
  readonly onBody?: (body: string) => void
}

/** Placeholders for headers whose values differ in each response. */
const placeholders: Readonly<Record<string, string>> = {
  date: "<date>",
  etag: "<etag>",
  "content-length": "<length>",
  "x-request-id": "<id>",
  "x-correlation-id": "<id>",
  "x-openstack-request-id": "<id>",
  traceparent: "<trace>",
  "x-almanac-position": "<position>",
}

const patterns: ReadonlyArray<readonly [pattern: RegExp, kind: string]> = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<uuid>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>"],
  [/127\.0\.0\.1:\d+/g, "<address>"],
]

const constant = (text: string) =>
  patterns.reduce((found, [pattern, kind]) => found.replaceAll(pattern, kind), text)

/** The names, types and booleans of a JSON value; for a list, only those of its first element. */
const shapeOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (value === null || typeof value === "boolean") return value
  if (typeof value !== "object") return typeof value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shapeOf(one)]))
}

/** Maximum characters of a recorded body; documents and pages are longer, and tested elsewhere. */
const body_chars_max = 2_000

const bodyText = (status: number, type: string, text: string) => {
  if (text === "") return "(no body)"
  if (!type.startsWith("application/json")) {
    return status >= 400 ? constant(text) : `(${type || "no type"})`
  }
  const shown = status >= 400 ? text : JSON.stringify(shapeOf(JSON.parse(text)))
  return shown.length > body_chars_max ? "(a long document)" : constant(shown)
}

/** Header lines of nearly every response: only a missing one is recorded. */
const usual = [
  "connection: keep-alive",
  "content-length: <length>",
  "date: <date>",
  "keep-alive: timeout=75",
  "x-correlation-id: <id>",
  "x-request-id: <id>",
]

const headerLines = (raw: ReadonlyArray<string>) => {
  const found: Array<string> = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] ?? "").toLowerCase()
    found.push(`${name}: ${placeholders[name] ?? constant(raw[i + 1] ?? "")}`)
  }
  const missing = usual.filter((line) => !found.includes(line)).map((line) => `without ${line}`)
  const others = found.filter((line) => !usual.includes(line))
  return [...others.toSorted(), ...missing].map((line) => `${line}\n`).join("")
}

/** Content types of endless responses: only their head is recorded. */
const is_endless = /^text\/event-stream/

/** Sends requests over persistent connections, and returns each response as text. */
export const recorder = (url: string) => {
  const agent = new Agent({ keepAlive: true })
  const send = ({ method, path, headers = {}, body, is_chunked = false, onBody }: Sent) =>
    new Promise<string>((resolve, reject) => {
      const length =
        body === undefined || is_chunked ? {} : { "content-length": Buffer.byteLength(body) }
      const options = { method, agent, headers: { ...length, ...headers } }
      const sent = request(new URL(path, url), options, (response) => {
        const { statusCode: status = 0, rawHeaders, headers: got } = response
        const type = got["content-type"] ?? ""
        const finish = (text: string) =>
          resolve(`${status}\n${headerLines(rawHeaders)}${bodyText(status, type, text)}`)
        if (is_endless.test(type)) {
          finish("")
          return void sent.destroy()
        }
        const parts: Array<Buffer> = []
        response.on("data", (part: Buffer) => parts.push(part))
        response.on("error", reject)
        response.on("end", () => {
          const text = Buffer.concat(parts).toString("latin1")
          onBody?.(text)
          finish(text)
        })
      })
      sent.on("error", reject)
      if (is_chunked && body !== undefined) sent.write(body)
      sent.end(is_chunked ? undefined : body)
    })
  return { send, close: () => agent.destroy() }
}

/** Milliseconds of silence after which a connection counts as kept open. */
const silence_ms = 1_000

/** Sends raw bytes; returns every response, and whether the server closed the connection. */
export const exchange = async (url: string, parts: ReadonlyArray<string | Buffer>) => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ""
  let is_ended = false
  let last_ms = performance.now()
  socket.setEncoding("latin1").on("data", (part: string) => {
    text += part
    last_ms = performance.now()
  })
  socket.on("end", () => {
    is_ended = true
  })
  socket.on("error", () => {
    is_ended = true
  })
  for (const part of parts) {
    socket.write(part)
    await pause(20)
  }
  while (!is_ended && performance.now() - last_ms < silence_ms) await pause(10)
  socket.destroy()
  return `${responsesIn(text)}${is_ended ? "(closed)" : "(kept open)"}`
}

/** The status, headers and body of each response in this text, with placeholders. */
const responsesIn = (text: string) => {
  let rest = text
  let all = ""
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n")
    if (end === -1) return `${all}${constant(rest)}\n`
    const [first = "", ...lines] = rest.slice(0, end).split("\r\n")
    const raw = lines.flatMap((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    })
    const length = Number(/^content-length: (\d+)$/im.exec(lines.join("\n"))?.[1] ?? 0)
    const body = rest.slice(end + 4, end + 4 + length)
    const type = /^content-type: (.*)$/im.exec(lines.join("\n"))?.[1] ?? ""
    const status = Number(first.split(" ")[1])
    const is_plain = status === 100 || length === 0
    const shown = is_plain ? "(no body)" : bodyText(status, type, body)
    all += `${first}\n${headerLines(raw)}${shown}\n`
    rest = rest.slice(end + 4 + length)
  }
  return all
}
