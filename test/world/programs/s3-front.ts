/** A proxy in front of an S3 server that can delay requests, cut them off, and use TLS. */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

export interface S3FrontOptions {
  /** Writes below these paths are delayed by this many milliseconds. */
  readonly slow?: { readonly paths: RegExp; readonly wait_ms: number }
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Whether a request is cut off. */
  readonly isCut?: (message: IncomingMessage) => boolean
}

/** Returns its endpoint on a free port of loopback; it stops with the scope. */
export const s3Front = (endpoint: string, { slow, tls, isCut }: S3FrontOptions = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const { hostname, port } = new URL(endpoint)
        const answer = (query: IncomingMessage, response: ServerResponse) => {
          if (isCut?.(query)) return query.socket.destroy()
          const { method, headers, url: path } = query
          const send = () => {
            const upstream = request({ hostname, port, method, headers, path }, (answered) => {
              response.writeHead(answered.statusCode ?? 502, answered.headers)
              answered.pipe(response)
            })
            upstream.on("error", () => response.destroy())
            query.pipe(upstream)
          }
          if (method === "PUT" && slow?.paths.test(`${path}`)) setTimeout(send, slow.wait_ms)
          else send()
        }
        const server = tls ? createTlsServer(tls, answer) : createServer(answer)
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        }),
    ),
    (server) => {
      // A server that listens on a port has this form of address.
      const { port } = server.address() as AddressInfo
      return `${tls ? "https" : "http"}://127.0.0.1:${port}`
    },
  )
