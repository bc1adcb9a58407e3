/** Connection state of a request, new ids, and a fast way to send a small response. */
import { createHash, randomBytes } from "node:crypto"
import { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Cookies, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { stringify } from "uuid"

const uuid_bytes = 16
/** RFC 9562 §5.8: version 8 is for custom formats. */
const version_8 = 0x80
const variant = 0x80

/** Number of ids per call of `randomBytes`, which costs as much as a small request. */
const ids_per_draw = 256
/** Random hex digits of an id, and one more for the variant. */
const digits = 19

/** Generates UUIDv7 (RFC 9562 §5.7). Ids of the same millisecond share its digits. */
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

/** Derives a UUID from the hash of a text. */
export const uuidOf = (text: string) => {
  const bytes = createHash("sha256").update(text).digest().subarray(0, uuid_bytes)
  bytes[6] = version_8 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = variant | ((bytes[8] ?? 0) & 0x3f)
  return stringify(bytes)
}

/** For a request without a socket, which has arrived completely. */
const no_socket = {
  is_read: true,
  bytes: 0,
  received_bytes: 0,
  is_held_up: false,
  is_taken: false,
}

/** The progress of a request's connection. If two successive results are equal, it is idle. */
export const progressOf = (source: object) => {
  if (!(source instanceof IncomingMessage)) return no_socket
  const { socket } = source
  return {
    is_read: isRead(source),
    bytes: socket.bytesRead + socket.bytesWritten,
    received_bytes: socket.bytesRead,
    is_held_up: socket.isPaused() || isFull(source),
    is_taken: socket.writableLength === 0,
  }
}

/** Whether the body's buffer is full, so that Node stops reading. */
const isFull = ({ readableLength, readableHighWaterMark }: IncomingMessage) =>
  readableLength >= readableHighWaterMark

/** The socket of a Node request; undefined for any other object. */
export const socketOf = (source: object) =>
  source instanceof IncomingMessage ? source.socket : undefined

/** Maximum size of a text response: larger ones gain nothing. */
const text_bytes_max = 64 * 1024
/** Maximum size of a binary response, which needs no encoding. */
const binary_bytes_max = 4 * 1024 * 1024

/**
 * Sends a small response with one write, if possible, and returns whether it did. Effect's server
 * sets strictContentLength, which makes Node write head and body separately, at twice the system's
 * cost. The server later sees that the response has ended, and does nothing.
 */
export const sendDirectly = (
  request: HttpServerRequest.HttpServerRequest,
  { status, headers, body, cookies }: HttpServerResponse.HttpServerResponse,
  extra_headers: Readonly<Record<string, string>>,
) => {
  const { source, method } = request
  if (!(source instanceof IncomingMessage) || method === "HEAD") return false
  if (!isRead(source) && extra_headers.connection !== "close") return false
  if (body._tag !== "Uint8Array" || !Cookies.isEmpty(cookies)) return false
  const bytes_max = body.text === undefined ? binary_bytes_max : text_bytes_max
  if (body.contentLength > bytes_max || bodiless_statuses.has(status)) return false
  const response = NodeHttpServerRequest.toServerResponse(request)
  if (!(response instanceof ServerResponse) || response.headersSent || response.destroyed)
    return false
  response.writeHead(status, { ...headers, ...extra_headers })
  response.end(body.text ?? body.body)
  return true
}

/** Node sets `complete` only after the handler was called, even if there is no body. */
const isRead = ({ complete, headers }: IncomingMessage) =>
  complete ||
  (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined)

const bodiless_statuses = new Set([204, 205, 304])
