/**
 * Hot routes: the few requests that a service answers before the router, on the server's own
 * request and response. Whatever is unusual about one is left to the plain route, and so is every
 * refusal: there is one place that words them.
 *
 * Source: DESIGN, the exception: bytes, hot routes; decision 0114.
 */
import type { HttpServerResponse } from "effect/http"
import type { Caller } from "#gateway/caller.ts"
import type { Failure } from "#gateway/envelope.ts"

/** Lower-case names. Node makes a list of `set-cookie` alone, which no client sends. */
export interface HotHeaders {
  readonly [name: string]: string | undefined
}

/** Node's IncomingMessage, as far as hot routes know it. */
export interface HotRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** Whether the body has arrived in full; without one only after the handlers were called. */
  readonly complete: boolean
  on(event: "data", listener: (bytes: Uint8Array) => void): unknown
  on(event: "end", listener: () => void): unknown
  off(event: "data", listener: (bytes: Uint8Array) => void): unknown
  off(event: "end", listener: () => void): unknown
  pause(): unknown
  resume(): unknown
}

/** Node's ServerResponse, as far as hot routes know it. */
export interface HotResponse {
  readonly destroyed: boolean
  readonly writableEnded: boolean
  /** By name, or name, value, name, value, ... */
  writeHead(status: number, headers: Readonly<Record<string, string>> | Array<string>): unknown
  /**
   * Answers whether the next piece may come at once; else it may after `drain`. `written` is called
   * when the system has the bytes, or with why it will not.
   */
  write(bytes: Uint8Array, written: (error?: Error | null) => void): boolean
  end(body?: string | Uint8Array): unknown
  destroy(): unknown
  on(event: "close" | "drain", listener: () => void): unknown
}

/** An endpoint as its API declares it. */
export interface HotEndpoint {
  readonly method: string
  readonly path: string
}

/** Why a request is not served: worded by the plain route, as if it had come there. */
export type HotRefusal = Failure | HttpServerResponse.HttpServerResponse

/** A request that was let in, and what its route may do with it. Exactly one answer ends it. */
export interface HotVisit {
  readonly request: HotRequest
  readonly headers: HotHeaders
  readonly response: HotResponse
  readonly caller: Caller
  readonly request_id: string
  readonly correlation_id: string
  /** Unix nanoseconds, now. */
  readonly now: () => bigint
  /** Bytes that the body may have. */
  readonly body_bytes_max: number
  /** Whether it ended: answered, refused, late, or its client is gone. */
  readonly isOver: () => boolean
  /** Called once where it ends before its answer began: nothing may be read or written then. */
  readonly onEnd: (end: () => void) => void
  /** The whole answer. */
  readonly answer: (
    status: number,
    headers: Readonly<Record<string, string>>,
    body?: string | Uint8Array,
  ) => void
  /** The head of an answer that is a stream; false where nobody waits for it any more. */
  readonly begin: (status: number, headers: Readonly<Record<string, string>>) => boolean
  /** Ends it by the plain route's answer; what is left of the body is not ours any more. */
  readonly refuse: (refusal: HotRefusal) => void
  /** Ends it for a defect of ours: it is logged, and cut off where its answer began. */
  readonly fail: (cause: unknown) => void
  /** Leaves it to the plain route as it came; only before anything of its body was read. */
  readonly leave: () => void
}

/** What is to be done with a request that fits. */
export interface HotPlan {
  readonly endpoint: HotEndpoint
  readonly run: (visit: HotVisit) => void
}

/** A service's hot routes; `plan` answers undefined for whatever it does not take. */
export interface HotRoutes {
  readonly endpoints: ReadonlyArray<HotEndpoint>
  readonly plan: (request: HotRequest, headers: HotHeaders) => HotPlan | undefined
}
