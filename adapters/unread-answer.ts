/**
 * Answers that nobody reads: a whole one waits in memory until its client takes it, and what does
 * not for as long as a request may idle is cut off. Streams have their deadlines in the gateway.
 */
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** How often connections are looked at, in milliseconds. */
const look_ms = 1000

/** Looks at all connections until the server closes; `patience_s` without a byte is enough. */
export const cutUnread = (server: Server, is_tls: boolean, patience_s: number) => {
  const answers = new Map<Socket, ServerResponse | undefined>()
  server.on(is_tls ? "secureConnection" : "connection", (socket: Socket) => {
    answers.set(socket, undefined)
    socket.once("close", () => answers.delete(socket))
  })
  server.on("request", ({ socket }, response) => {
    if (answers.has(socket)) answers.set(socket, response)
  })
  const looking = setInterval(() => {
    for (const [socket, response] of answers) {
      const is_waiting = response?.writableEnded === true && !response.writableFinished
      // Node ends what it runs out for, and sets another one itself when the answer is taken.
      if (is_waiting && !socket.timeout) socket.setTimeout(patience_s * 1000)
    }
  }, look_ms)
  server.once("close", () => clearInterval(looking))
}
