/**
 * Every publisher in one server on loopback: it responds in the documented formats, or as a test
 * requires. Its numbers are invented.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { Effect, Redacted } from "effect"
import { type Publisher, publishers } from "#adapters/capital-pressure/feeds/plan.ts"
import type { FeedsHttpOptions } from "#adapters/capital-pressure/feeds-http.ts"
import { documented } from "./publisher-answers.ts"

export interface Asked {
  /** The full URL, including the query. */
  readonly url: URL
  readonly headers: IncomingMessage["headers"]
}

/** Responds in place of the publisher if it returns true. */
export type Instead = (request: Asked, response: ServerResponse) => boolean

export interface FakePublisher {
  readonly url: string
  readonly requests: Array<Asked>
  instead: Instead
}

/** All publishers, on a free port of loopback until the scope ends. */
export const publisher = (tls?: { readonly key: string; readonly cert: string }) => {
  const requests: Array<Asked> = []
  // A URL follows.
  const fake = { url: "", requests, instead: (): boolean => false } as FakePublisher
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const one = { url: new URL(request.url ?? "", "http://publisher"), headers: request.headers }
    requests.push(one)
    if (fake.instead(one, response)) return
    void documented(one.url).then((answer) => {
      if (answer === undefined) response.writeHead(404).end("no such page")
      else response.writeHead(200, { "content-type": answer.type }).end(answer.body)
    })
  }
  const listening = Effect.callback<ReturnType<typeof createServer>>((resume) => {
    const server = tls ? createTlsServer(tls, listener) : createServer(listener)
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  })
  return Effect.acquireRelease(listening, (server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    }),
  ).pipe(
    Effect.map((server) => {
      // A server that listens on a port has this form of address.
      const { port } = server.address() as AddressInfo
      return Object.assign(fake, { url: `${tls ? "https" : "http"}://127.0.0.1:${port}` })
    }),
  )
}

/** Every publisher at one address. */
export const basesAt = (url: string): Record<Publisher, string> => {
  const names = Object.keys(publishers) as Array<Publisher> // It has no other keys.
  const bases = Object.fromEntries(names.map((name) => [name, url]))
  return bases as Record<Publisher, string> // Each name has its address by now.
}

/** The default options, with the fake's address and short delays. */
export const optionsAt = (url: string, folder: string): FeedsHttpOptions => ({
  version: "1.2.3",
  contact: "",
  cftc_tls_verify: false,
  bases: basesAt(url),
  folder,
  times: { idle_ms: 5000, attempt_ms: 10_000, pause_ms: 5, spacing_ms: 0 },
  fred_key: Redacted.make(""),
  stooq_key: Redacted.make(""),
  prices_source: "yahoo",
  prices_dir: "",
})
