/** What a listener serves: the part that answers requests, whatever it is. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import type { Context, Effect, Scope } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"

/** The answer to a request that goes no further. */
export interface Broken {
  readonly status: number
  readonly request_id: string
  readonly body: Readonly<Record<string, unknown>>
}

/** Status and text for a request that the listener refuses. */
export interface Refusal {
  readonly status: number
  readonly detail: string
}

export interface Handler {
  /** Words the answer to a request that goes no further; without `refusal`, its body broke off. */
  readonly broken: (method: string, url: string, refusal?: Refusal) => Broken
  /** Sees each request first; calls `next` for one that `app` serves. */
  readonly direct: (request: IncomingMessage, response: ServerResponse, next: () => void) => void
  readonly app: Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    unknown,
    HttpServerRequest.HttpServerRequest | Scope.Scope
  >
  /** The context of `app`. */
  readonly context: Context.Context<never>
  /** Ends what would never end by itself, such as event streams. */
  readonly close: Effect.Effect<void>
}

/** A second handler on the same port, for paths of its own: links between nodes. */
export interface InternalHandler {
  /** The path above all of its own, such as `/internal`. */
  readonly prefix: string
  readonly request: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /** Closes its open connections. */
  readonly close: () => void
}

/** The settings of a listener; README.md says what each limit is for. */
export interface ListenerSettings {
  readonly api: {
    readonly bind_host: string
    readonly bind_port: number
    readonly request_timeout_seconds: number
    readonly max_connections: number
    readonly max_connections_per_address: number
    /** CIDRs whose connections are not counted by address. */
    readonly unlimited_addresses: ReadonlyArray<string>
  }
  /** Paths of PEM files; empty where there is none. */
  readonly tls: { readonly cert: string; readonly key: string; readonly client_ca: string }
}
