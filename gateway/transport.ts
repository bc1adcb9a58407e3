/** The port to the platform below HTTP: connections, new ids, hashes. */
import { Context } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ClientCertificate } from "#gateway/identity.ts"

/** The progress of a request's connection; two equal values in succession mean that it is idle. */
export interface Progress {
  /** Whether the request's body has arrived in full. */
  readonly is_read: boolean
  /** Bytes over the connection in both directions. */
  readonly bytes: number
  /** Bytes received over the connection, including earlier requests. */
  readonly received_bytes: number
  /** Whether the rest of the body is held up because this process has not read what has arrived. */
  readonly is_held_up: boolean
  /** Whether the client has received everything that was written. */
  readonly is_taken: boolean
}

/** `source` is the underlying server's request object, as in HttpServerRequest. */
export class Transport extends Context.Service<
  Transport,
  {
    /** A new UUIDv7. */
    readonly newId: () => string
    /** A UUID derived from a hash of the text: deterministic and practically unique. */
    readonly idOf: (text: string) => string
    /** The certificate that the TLS layer has verified, if the client sent one. */
    readonly certificateOf: (source: object) => ClientCertificate | undefined
    /** The client's IP address; empty when the connection is closed. */
    readonly addressOf: (source: object) => string
    readonly progressOf: (source: object) => Progress
    /**
     * Writes a small response with these additional headers immediately, which is faster than
     * Effect's server. Only possible if the body is read, or with `connection: close`. Returns
     * whether it was written.
     */
    readonly hasten: (
      request: HttpServerRequest.HttpServerRequest,
      response: HttpServerResponse.HttpServerResponse,
      headers: Readonly<Record<string, string>>,
    ) => boolean
  }
>()("gateway/Transport") {}
