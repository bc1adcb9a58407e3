/**
 * Disconnects clients that do not read their response, or do not finish the body of a request that
 * already has a response: each such client occupies a connection and memory. The gateway limits
 * streams.
 *
 * A complete response is buffered until its client has read it. The connection is closed if the
 * client reads nothing for the idle time of a request, or reads too slowly.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Interval between checks of the connections, in milliseconds. */
const check_interval_ms = 1000
const ms_per_s = 1000

/** Minimum rate of reading a response, or of sending the rest of a body, in bytes per second. */
const transfer_bytes_per_s_min = 16 * 1024

/** The deadline for transferring this many bytes, in Unix milliseconds. */
const transferDeadline = (
  now_ms: number,
  bytes: number,
  idle_s_max: number,
  bytes_per_s_min: number = transfer_bytes_per_s_min,
) => now_ms + (idle_s_max + bytes / bytes_per_s_min) * ms_per_s

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Deadline of the exchange in Unix milliseconds, set once the response is complete. */
  due_ms?: number
}

/** Whether the response was read and the request is complete. */
const isComplete = ({ request, response }: Exchange) =>
  response.writableFinished && request.complete

/** Checks all connections periodically. `idle_s_max` is the maximum time without progress. */
export const disconnectStalled = (
  server: Server,
  is_tls: boolean,
  idle_s_max: number,
  bytes_per_s_min?: number,
) => {
  // In request order: a client may send further requests before it has read the first response.
  const exchanges = new Map<Socket, Array<Exchange>>()
  /** The current exchange of a connection, after removing completed ones. */
  const first = (waiting: Array<Exchange>) => {
    while (waiting[0] !== undefined && isComplete(waiting[0])) waiting.shift()
    return waiting[0]
  }
  server.on(is_tls ? "secureConnection" : "connection", (socket: Socket) => {
    exchanges.set(socket, [])
    socket.once("close", () => exchanges.delete(socket))
  })
  server.on("request", (request, response) => {
    const waiting = exchanges.get(request.socket)
    if (waiting === undefined) return
    first(waiting)
    waiting.push({ request, response })
  })
  const check = () => {
    const now_ms = Date.now()
    for (const [socket, waiting] of exchanges) {
      const exchange = first(waiting)
      if (exchange?.response.writableEnded !== true) continue
      // Node ends a socket that times out, and sets another timeout once the response was read.
      if (!exchange.response.writableFinished && !socket.timeout) {
        socket.setTimeout(idle_s_max * ms_per_s)
      }
      exchange.due_ms ??= transferDeadline(
        now_ms,
        socket.writableLength,
        idle_s_max,
        bytes_per_s_min,
      )
      if (now_ms >= exchange.due_ms) socket.destroy()
    }
  }
  server.once("listening", () => {
    const check_timer = setInterval(check, check_interval_ms)
    server.once("close", () => clearInterval(check_timer))
  })
}
