/**
 * Answers that nobody reads: a whole one waits in memory until its client takes it, and what does
 * not for as long as a request may idle is cut off. Streams have their deadlines in the gateway.
 */
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** How often connections are looked at, in milliseconds. */
const look_ms = 1000

/** Looks at all connections while the server listens; `patience_s` without a byte is enough. */
export const cutUnread = (server: Server, is_tls: boolean, patience_s: number) => {
  // In the order of the requests: a client may send some before it has read the first answer.
  const answers = new Map<Socket, Array<ServerResponse>>()
  /** The one that is being written; those before it are taken. */
  const first = (waiting: Array<ServerResponse>) => {
    while (waiting[0]?.writableFinished) waiting.shift()
    return waiting[0]
  }
  server.on(is_tls ? "secureConnection" : "connection", (socket: Socket) => {
    answers.set(socket, [])
    socket.once("close", () => answers.delete(socket))
  })
  server.on("request", ({ socket }, response) => {
    const waiting = answers.get(socket)
    if (waiting === undefined) return
    first(waiting)
    waiting.push(response)
  })
  const look = () => {
    for (const [socket, waiting] of answers) {
      const is_waiting = first(waiting)?.writableEnded === true
      // Node ends what it runs out for, and sets another one itself when the answer is taken.
      if (is_waiting && !socket.timeout) socket.setTimeout(patience_s * 1000)
    }
  }
  server.once("listening", () => {
    const looking = setInterval(look, look_ms)
    server.once("close", () => clearInterval(looking))
  })
}
