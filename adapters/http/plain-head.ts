/**
 * The head of a request as nearly all clients send it, read from the first bytes of one read.
 *
 * It takes only what can mean one thing: each header once, printable ASCII, a length in digits, no
 * transfer coding, no upgrade. For whatever else a head may be it answers undefined, and Node's own
 * parser reads it: so this is no second opinion on how requests are framed.
 *
 * Source: RFC 9112 §2 to §6; decision 0159.
 */
import type { HotHeaders } from "#gateway/direct.ts"

/** What a head says. */
export interface PlainHead {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** With lower-case names. */
  readonly headers: HotHeaders
  /** Bytes of the head itself, with the empty line behind it. */
  readonly head_bytes: number
  /** Bytes of the body that follows it. */
  readonly body_bytes: number
}

/** Longest head in characters: beyond it Node's parser says 431. */
const head_chars_max = 16 * 1024
/** Nearly all heads end within so many characters; a body behind them is no text. */
const look_chars = 512
/** Clients send some ten headers. */
const headers_max = 64

const blank_line = "\r\n\r\n"
const version = " HTTP/1.1"

/** Whether each method comes with a body here. */
const methods: ReadonlyMap<string, boolean> = new Map([
  ["GET", false],
  ["HEAD", false],
  ["DELETE", false],
  ["PUT", true],
  ["POST", true],
])

/** Characters of a path and query that need no second look. */
const plain_url = /^\/[\w\-./?=&%~+,:;@]*$/
const plain_name = /^[A-Za-z\d-]+$/
const plain_value = /^[\t\u0020-\u007e]*$/
const plain_length = /^\d{1,15}$/

/** Headers that say how the message or its connection go on, which is Node's to know. */
const of_framing = new Set([
  "transfer-encoding",
  "upgrade",
  "expect",
  "te",
  "trailer",
  "keep-alive",
  "proxy-connection",
  "http2-settings",
])

interface Fields {
  readonly headers: HotHeaders
  /** Undefined: no length is said. */
  readonly length: number | undefined
}

/** Everything behind the request line; undefined where one line is not plain. */
const fieldsOf = (text: string): Fields | undefined => {
  const lines = text.split("\r\n")
  if (lines.length > headers_max) return undefined
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(":")
    if (colon < 1) return undefined
    const name = line.slice(0, colon)
    const value = line.slice(colon + 1)
    if (!plain_name.test(name) || !plain_value.test(value)) return undefined
    const lower = name.toLowerCase()
    if (Object.hasOwn(headers, lower) || of_framing.has(lower)) return undefined
    headers[lower] = value.trim()
  }
  const { host, connection, "content-length": length } = headers
  if (host === undefined) return undefined
  if (connection !== undefined && connection.toLowerCase() !== "keep-alive") return undefined
  if (length !== undefined && !plain_length.test(length)) return undefined
  return { headers, length: length === undefined ? undefined : Number(length) }
}

/** Where the empty line behind the head begins, and text up to there at least. */
const headText = (bytes: Buffer): readonly [text: string, end: number] => {
  const text = bytes.toString("latin1", 0, look_chars)
  const end = text.indexOf(blank_line)
  if (end >= 0 || bytes.length <= look_chars) return [text, end]
  const longer = bytes.toString("latin1", 0, head_chars_max)
  return [longer, longer.indexOf(blank_line)]
}

/**
 * Reads the heads of one connection, whose headers are mostly those of the request before: they
 * are looked at anew only where they differ.
 */
export const plainHeads = () => {
  let last_text = ""
  let last: Fields | undefined
  return (bytes: Buffer): PlainHead | undefined => {
    const [text, end] = headText(bytes)
    const line_end = text.indexOf("\r\n")
    if (end < 0 || line_end === end) return undefined
    const space = text.indexOf(" ")
    const url_end = line_end - version.length
    if (space < 0 || url_end <= space || !text.startsWith(version, url_end)) return undefined
    const method = text.slice(0, space)
    const has_body = methods.get(method)
    const url = text.slice(space + 1, url_end)
    if (has_body === undefined || !plain_url.test(url)) return undefined
    const field_text = text.slice(line_end + 2, end)
    if (field_text !== last_text) {
      last = fieldsOf(field_text)
      last_text = field_text
    }
    if (last === undefined || (last.length !== undefined) !== has_body) return undefined
    const head_bytes = end + blank_line.length
    return { method, url, headers: last.headers, head_bytes, body_bytes: last.length ?? 0 }
  }
}
