/**
 * Direct routes: endpoints that use the server's own request and response instead of Effect's API,
 * because bytes pass through them. The door admits their requests like all others, and writes their
 * error responses.
 *
 * Source: DESIGN, the exception: bytes; decision 0196.
 */
import type { HttpServerResponse } from "effect/http"
import type { Failure } from "#gateway/envelope.ts"
import type { RequestContext } from "#gateway/request-context.ts"

/** Headers by lower-case name. In Node only `set-cookie` is an array. */
export interface DirectHeaders {
  readonly [name: string]: string | undefined
}

/** The part of Node's IncomingMessage that direct routes use. */
export interface DirectRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** Whether the body has arrived in full. Without a body, true only once the handlers have run. */
  readonly complete: boolean
  on(event: "data", listener: (bytes: Uint8Array) => void): unknown
  on(event: "end", listener: () => void): unknown
  off(event: "data", listener: (bytes: Uint8Array) => void): unknown
  off(event: "end", listener: () => void): unknown
  pause(): unknown
  resume(): unknown
}

/** The part of Node's ServerResponse that direct routes use. */
export interface DirectResponse {
  readonly destroyed: boolean
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown
  /** The interim response to `Expect: 100-continue`. */
  writeContinue(): unknown
  /**
   * Returns whether the next piece may follow at once; otherwise it waits for `drain`. `written` is
   * called when the system has the bytes, or with the reason why it does not take them.
   */
  write(bytes: string | Uint8Array, written: (error?: Error | null) => void): boolean
  end(body?: string | Uint8Array): unknown
  destroy(): unknown
  on(event: "close" | "drain", listener: () => void): unknown
}

/** The reason to refuse a request: a failure, or a rejection that the service has encoded. */
export type Refusal = Failure | HttpServerResponse.HttpServerResponse

/** An admitted request and its response. Exactly one response ends it. */
export interface Exchange {
  readonly request: DirectRequest
  readonly response: DirectResponse
  readonly headers: DirectHeaders
  /** Path and query. */
  readonly url: string
  /** Parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string | undefined>>
  readonly context: RequestContext
  /** The current time in Unix nanoseconds. */
  readonly now: () => bigint
  /** Maximum number of bytes of the body. */
  readonly body_bytes_max: number
  /** Whether the exchange has ended: with a response, or because the client disconnected. */
  readonly isOver: () => boolean
  /**
   * Sets a callback for an exchange that ends before its response begins; nothing may be read or
   * written then.
   */
  readonly onEnd: (end: () => void) => void
  /** Sends the whole response. */
  readonly answer: (
    status: number,
    headers: Readonly<Record<string, string>>,
    body?: string | Uint8Array,
  ) => void
  /** Sends the head of a streamed response; returns false if the client disconnected. */
  readonly begin: (status: number, headers: Readonly<Record<string, string>>) => boolean
  /** Ends the exchange with an error. A response that has begun is cut off. */
  readonly refuse: (refusal: Refusal) => void
  /** Ends the exchange because of a defect, which is logged. */
  readonly fail: (cause: unknown) => void
  /** Completes the body of a rejection that follows a head of 200, as a stream's last line. */
  readonly complete: (
    rejection: Readonly<Record<string, unknown>>,
  ) => Readonly<Record<string, unknown>>
}

/** Method and path as in the API, and the function that serves them. */
export interface DirectRoute {
  readonly method: string
  readonly path: string
  readonly run: (exchange: Exchange) => void
}
