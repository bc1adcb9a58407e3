/** The interface between the listener and the code that handles its requests. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import type { Context, Effect, Scope } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"

/** The response to a request that is rejected before it reaches `app`. */
export interface ErrorResponse {
  readonly status: number
  readonly request_id: string
  readonly body: Readonly<Record<string, unknown>>
}

/** Status and text for a request that the listener rejects. */
export interface Refusal {
  readonly status: number
  readonly detail: string
}

export interface Handler {
  /**
   * Builds the error response to a request. Without `refusal`, the request's body is incomplete.
   */
  readonly errorResponse: (method: string, url: string, refusal?: Refusal) => ErrorResponse
  /** Receives each request first; calls `next` for one that `app` handles. */
  readonly direct: (request: IncomingMessage, response: ServerResponse, next: () => void) => void
  readonly app: Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    unknown,
    HttpServerRequest.HttpServerRequest | Scope.Scope
  >
  /** The context of `app`. */
  readonly context: Context.Context<never>
  /** Ends responses that would otherwise never end, such as event streams. */
  readonly close: Effect.Effect<void>
}

/** A second handler on the same port, for requests between nodes. */
export interface InternalHandler {
  /** The path prefix of its requests, such as `/internal`. */
  readonly prefix: string
  readonly request: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /** Closes its open connections. */
  readonly close: () => void
}

/** The settings of a listener. README.md describes each limit. */
export interface ListenerSettings {
  readonly api: {
    readonly bind_host: string
    readonly bind_port: number
    readonly request_timeout_seconds: number
    readonly max_connections: number
    readonly max_connections_per_address: number
    /** CIDRs that are exempt from the limit per address. */
    readonly unlimited_addresses: ReadonlyArray<string>
  }
  /** Paths of PEM files; empty if not configured. */
  readonly tls: { readonly cert: string; readonly key: string; readonly client_ca: string }
}
