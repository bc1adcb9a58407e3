/**
 * The way of a connection from a thread that answers requests for blobs to the process's own: a
 * socket of the system inside the process. A line of JSON goes before its bytes.
 *
 * Source: decision 0168.
 */
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { Preface } from "./message.ts"

/** A refusal is a few hundred bytes of it. */
const preface_bytes_max = 256 * 1024

/** Bytes go either way for as long as both sockets are there; half of one may end alone. */
const joined = (one: Socket, other: Socket) => {
  const pour = (from: Socket, to: Socket) => {
    from.pipe(to)
    from.on("error", () => to.destroy())
    from.on("close", () => to.destroySoon())
  }
  pour(one, other)
  pour(other, one)
}

/** Takes a connection to where the tunnel ends. */
export const enterTunnel = (path: string, socket: Socket, preface: Preface): void => {
  const inner = connect({ path, allowHalfOpen: true })
  inner.write(`${JSON.stringify(preface)}\n`)
  joined(socket, inner)
}

/** Reads the preface, then leaves the socket with the bytes behind it to `take`. */
const arrive = (socket: Socket, take: (socket: Socket, preface: Preface) => void) => {
  let head = Buffer.alloc(0)
  const read = (bytes: Buffer) => {
    head = Buffer.concat([head, bytes])
    const end = head.indexOf("\n")
    if (end < 0) {
      if (head.length > preface_bytes_max) socket.destroy()
      return
    }
    socket.off("data", read)
    // Only `enterTunnel` writes to this socket.
    const preface = JSON.parse(head.toString("utf8", 0, end)) as Preface
    // The other end of this socket is this process: who asks is at the first one's.
    Object.defineProperty(socket, "remoteAddress", { value: preface.address })
    take(socket, preface)
    if (head.length > end + 1) socket.unshift(head.subarray(end + 1))
  }
  socket.on("data", read)
}

/** Where tunnels end, until the scope closes; in a folder that nobody else may enter. */
export const tunnelEnd = Effect.fnUntraced(function* (
  take: (socket: Socket, preface: Preface) => void,
) {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "almanac-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
  )
  const path = join(folder, "tunnel")
  const server = createServer({ allowHalfOpen: true }, (socket) => arrive(socket, take))
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen(path), "listening")),
    () => Effect.sync(() => server.close()),
  )
  return path
})
