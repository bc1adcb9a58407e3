/**
 * Clients that do not take their answer, or do not end the body of a request that was answered:
 * each holds a connection, and memory, for nothing. Streams have their deadlines in the gateway.
 *
 * A whole answer waits in memory until its client takes it. What nothing of is taken for as long as
 * a request may idle is cut off, and so is what is taken too slowly.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** How often connections are looked at, in milliseconds. */
const look_ms = 1000
const ms_per_s = 1000

/** The slowest that a client may take an answer, or send the rest of a body, in bytes a second. */
const taken_bytes_per_s_min = 16 * 1024

/** Until when so many bytes must have been taken, in Unix milliseconds. */
const takenBy = (
  now_ms: number,
  bytes: number,
  patience_s: number,
  bytes_per_s_min: number = taken_bytes_per_s_min,
) => now_ms + (patience_s + bytes / bytes_per_s_min) * ms_per_s

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** When it must be over, in Unix milliseconds: set once the answer is there in full. */
  due_ms?: number
}

/** Whether nothing of it is left to do. */
const isOver = ({ request, response }: Exchange) => response.writableFinished && request.complete

/** Looks at all connections while the server listens; `patience_s` without a byte is enough. */
export const cutUnread = (
  server: Server,
  is_tls: boolean,
  patience_s: number,
  bytes_per_s_min?: number,
) => {
  // In the order of the requests: a client may send some before it has read the first answer.
  const exchanges = new Map<Socket, Array<Exchange>>()
  /** The one that is under way; those before it are over. */
  const first = (waiting: Array<Exchange>) => {
    while (waiting[0] !== undefined && isOver(waiting[0])) waiting.shift()
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
  const look = () => {
    const now_ms = Date.now()
    for (const [socket, waiting] of exchanges) {
      const exchange = first(waiting)
      if (exchange?.response.writableEnded !== true) continue
      // Node ends what it runs out for, and sets another one itself when the answer is taken.
      if (!exchange.response.writableFinished && !socket.timeout) {
        socket.setTimeout(patience_s * ms_per_s)
      }
      exchange.due_ms ??= takenBy(now_ms, socket.writableLength, patience_s, bytes_per_s_min)
      if (now_ms >= exchange.due_ms) socket.destroy()
    }
  }
  server.once("listening", () => {
    const looking = setInterval(look, look_ms)
    server.once("close", () => clearInterval(looking))
  })
}
