/** Facts about a request's connection, new ids, and a fast way to write a small response. */
import { createHash, randomBytes } from "node:crypto"
import { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Cookies, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { stringify } from "uuid"

const uuid_bytes = 16
/** RFC 9562 §5.8: version 8 is a UUID whose bits are the maker's own. */
const version_8 = 0x80
const variant = 0x80

/** Ids for which random bytes are drawn at once: a draw costs as much as a small request. */
const ids_per_draw = 256
/** Random hex digits of one id, and one more for the variant's bits. */
const digits = 19

/** Makes UUIDv7 (RFC 9562 §5.7). Ids of one millisecond share its digits. */
export const newIds = () => {
  let pool = ""
  let used = 0
  let at_ms = 0
  let time = ""
  return () => {
    if (used + digits > pool.length) {
      pool = randomBytes((ids_per_draw * digits) / 2).toString("hex")
      used = 0
    }
    const now_ms = Date.now()
    if (now_ms !== at_ms) {
      at_ms = now_ms
      const hex = now_ms.toString(16).padStart(12, "0")
      time = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
    }
    const from = used
    used += digits
    const variant = "89ab"[pool.charCodeAt(from + digits - 1) & 3]
    const random = pool.slice(from, from + digits - 1)
    return `${time}${random.slice(0, 3)}-${variant}${random.slice(3, 6)}-${random.slice(6)}`
  }
}

/** A UUID from the hash of a text: the same for the same text. */
export const idOf = (text: string) => {
  const bytes = createHash("sha256").update(text).digest().subarray(0, uuid_bytes)
  bytes[6] = version_8 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = variant | ((bytes[8] ?? 0) & 0x3f)
  return stringify(bytes)
}

/** The progress of a request that no socket brought: it has arrived in full. */
const no_connection = {
  is_read: true,
  bytes: 0,
  received_bytes: 0,
  is_held_up: false,
  is_taken: false,
}

/** The progress of a request's connection; two equal ones in a row mean that it is idle. */
export const progressOf = (source: object) => {
  if (!(source instanceof IncomingMessage)) return no_connection
  const { socket } = source
  return {
    is_read: isRead(source),
    bytes: socket.bytesRead + socket.bytesWritten,
    received_bytes: socket.bytesRead,
    is_held_up: socket.isPaused() || isFull(source),
    is_taken: socket.writableLength === 0,
  }
}

/** Whether Node reads no more of the body until some of it is consumed. */
const isFull = ({ readableLength, readableHighWaterMark }: IncomingMessage) =>
  readableLength >= readableHighWaterMark

/** The socket of a Node request; undefined for any other object. */
export const socketOf = (source: object) =>
  source instanceof IncomingMessage ? source.socket : undefined

/** Larger texts gain nothing from being written at once. */
const small_bytes_max = 64 * 1024
/** The same for bytes, which need no encoding. */
const kept_bytes_max = 4 * 1024 * 1024

/**
 * Writes a small response at once and returns whether it did. Effect's server sets
 * strictContentLength, with which Node writes head and body separately: twice the system's cost.
 * The server sees afterwards that the response has ended, and does nothing.
 */
export const hasten = (
  request: HttpServerRequest.HttpServerRequest,
  { status, headers, body, cookies }: HttpServerResponse.HttpServerResponse,
  more: Readonly<Record<string, string>>,
) => {
  const { source, method } = request
  if (!(source instanceof IncomingMessage) || method === "HEAD") return false
  if (!isRead(source) && more.connection !== "close") return false
  if (body._tag !== "Uint8Array" || !Cookies.isEmpty(cookies)) return false
  const bytes_max = body.text === undefined ? kept_bytes_max : small_bytes_max
  if (body.contentLength > bytes_max || bodiless.has(status)) return false
  const response = NodeHttpServerRequest.toServerResponse(request)
  if (!(response instanceof ServerResponse) || response.headersSent || response.destroyed)
    return false
  response.writeHead(status, { ...headers, ...more })
  response.end(body.text ?? body.body)
  return true
}

/** A request without a body is complete for Node only after its handler was called. */
const isRead = ({ complete, headers }: IncomingMessage) =>
  complete ||
  (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined)

/** Statuses without a body. */
const bodiless = new Set([204, 205, 304])
