/** The port to what only the machine below HTTP knows: connections, fresh ids, hashes. */
import { Context } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ClientCertificate } from "#gateway/identity.ts"

/** How far a request's connection has come; two equal ones in a row mean that nothing moved. */
export interface Progress {
  /** Whether the request's body has arrived in full. */
  readonly is_read: boolean
  /** Bytes that went over the connection in either direction. */
  readonly bytes: number
  /** Bytes that came over the connection, of earlier requests too. */
  readonly received_bytes: number
  /** Whether the rest of the body waits for this process to take what is there already. */
  readonly is_held_up: boolean
  /** Whether the other end has taken what of the answer is there already. */
  readonly is_taken: boolean
}

/** `source` is the request object of the server underneath, as HttpServerRequest carries it. */
export class Transport extends Context.Service<
  Transport,
  {
    /** A fresh UUIDv7. */
    readonly newId: () => string
    /** A UUID made of a text: the same for the same text, and no other text is found for it. */
    readonly idOf: (text: string) => string
    /** The certificate that the TLS layer has verified, if the client showed one. */
    readonly certificateOf: (source: object) => ClientCertificate | undefined
    /** The other end's IP address; empty when the connection is gone. */
    readonly addressOf: (source: object) => string
    readonly progressOf: (source: object) => Progress
    /**
     * Writes a small answer with these headers too, at once: faster than the server's own way, but
     * only once the body is read or with `connection: close`. Answers whether it did.
     */
    readonly hasten: (
      request: HttpServerRequest.HttpServerRequest,
      response: HttpServerResponse.HttpServerResponse,
      headers: Readonly<Record<string, string>>,
    ) => boolean
  }
>()("gateway/Transport") {}
