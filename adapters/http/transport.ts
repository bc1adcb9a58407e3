/** What the gateway asks of Node's HTTP connections, and ids and hashes with it. */
import { createHash, randomBytes } from "node:crypto"
import { IncomingMessage, ServerResponse } from "node:http"
import { TLSSocket } from "node:tls"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Layer } from "effect"
import { Cookies, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { stringify } from "uuid"
import { clientCertificate } from "#adapters/identity/static.ts"
import { type Progress, Transport } from "#gateway/transport.ts"

const uuid_bytes = 16
/** RFC 9562 §5.8: version 8 is a UUID whose bits are the maker's own. */
const version_8 = 0x80
const variant = 0x80

/** Random bytes are drawn for this many ids at once: each draw costs as much as a small request. */
const ids_per_draw = 256
/** Random hex digits of one id, and one more for the variant's bits. */
const digits = 19

/** RFC 9562 §5.7, by hand: the milliseconds' digits are made once for all ids of one. */
const freshIds = () => {
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

const idOf = (text: string) => {
  const bytes = createHash("sha256").update(text).digest().subarray(0, uuid_bytes)
  bytes[6] = version_8 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = variant | ((bytes[8] ?? 0) & 0x3f)
  return stringify(bytes)
}

/** A request that came from elsewhere than a socket: nothing of it is still to come. */
const no_connection: Progress = {
  is_read: true,
  bytes: 0,
  received_bytes: 0,
  is_held_up: false,
  is_taken: false,
}

const progressOf = (source: object): Progress => {
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

/** Whether Node reads no more of the body until some of what is there is taken. */
const isFull = ({ readableLength, readableHighWaterMark }: IncomingMessage) =>
  readableLength >= readableHighWaterMark

const socketOf = (source: object) => (source instanceof IncomingMessage ? source.socket : undefined)

/** Above this the bytes cost more than how they are handed over. */
const small_bytes_max = 64 * 1024
/** Bytes that are there already go out as they are, so that only the largest are left to it. */
const kept_bytes_max = 4 * 1024 * 1024

/**
 * The server sets strictContentLength, with which Node writes head and body apart: twice the
 * system's cost of a small answer. A body of known length goes out as one; the server then sees
 * that the answer has ended, and does nothing.
 */
const hasten = (
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

/** Answers that have no body, whatever is handed over with them. */
const bodiless = new Set([204, 205, 304])

export const httpTransport = Layer.succeed(Transport, {
  newId: freshIds(),
  idOf,
  certificateOf: (source) => {
    const socket = socketOf(source)
    return socket instanceof TLSSocket ? clientCertificate(socket) : undefined
  },
  addressOf: (source) => socketOf(source)?.remoteAddress ?? "",
  progressOf,
  hasten,
})
