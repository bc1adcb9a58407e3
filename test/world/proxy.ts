/** A TCP proxy that can drop a server's responses and cut connections. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect } from "effect"

export interface Proxy {
  readonly url: string
  /** From now on drops responses; requests still arrive. */
  readonly swallow: () => void
  /** Closes all connections; new ones work. */
  readonly cut: () => void
  /** Closes all connections, and rejects new ones at once. */
  readonly refuse: () => void
  /** Accepts new connections again. */
  readonly accept: () => void
}

/** A proxy to `url` on a free port of loopback, stopped with the scope. */
export const proxy = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<State>((resume) => {
        const state = start(Number(new URL(url.replace(/^(nats:\/\/)?/, "tcp://")).port))
        state.server.listen(0, "127.0.0.1", () => resume(Effect.succeed(state)))
      }),
      ({ server, cut }) =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          cut()
        }),
    ),
    ({ server, ...faults }): Proxy => {
      const address = server.address()
      const port = typeof address === "object" ? address?.port : undefined
      return { url: `127.0.0.1:${port}`, ...faults }
    },
  )

interface State extends Omit<Proxy, "url"> {
  readonly server: Server
}

const start = (port: number): State => {
  const sockets = new Set<Socket>()
  let swallowing = false
  let refusing = false
  const server = createServer((client) => {
    if (refusing) return client.destroy()
    const upstream = connect(port, "127.0.0.1")
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on("error", () => socket.destroy())
      socket.on("close", () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    client.on("data", (data) => upstream.write(data))
    upstream.on("data", (data) => {
      if (!swallowing) client.write(data)
    })
  })
  const cut = () => {
    swallowing = false
    for (const socket of sockets) socket.destroy()
  }
  return {
    server,
    swallow: () => {
      swallowing = true
    },
    cut,
    refuse: () => {
      refusing = true
      cut()
    },
    accept: () => {
      refusing = false
    },
  }
}
