/**
 * The port to a buffer that holds a response until it is complete. Responses are sent whole or not
 * at all, and may exceed the available memory. Source: decisions of document 3, carrier range.
 */
import { Context, type Effect, Schema, type Scope, type Stream } from "effect"

/** The response cannot be stored or read back, for example because the disk is full. */
export class BufferFailed extends Schema.TaggedError<BufferFailed>()("BufferFailed", {
  detail: Schema.String,
}) {}

export interface ResponseBuffer {
  /** Appends bytes, which must not change afterwards; one call at a time. */
  readonly add: (bytes: Uint8Array) => Effect.Effect<void, BufferFailed>
  /** Number of bytes. */
  readonly length: () => number
  /** The first `length` bytes, in pieces. Nothing may be added afterwards. */
  readonly read: (length: number) => Stream.Stream<Uint8Array, BufferFailed>
}

export class ResponseBuffers extends Context.Service<
  ResponseBuffers,
  {
    /** An empty buffer, which is removed when the scope closes or the process dies. */
    readonly open: Effect.Effect<ResponseBuffer, never, Scope.Scope>
  }
>()("actors/carrier-search/ResponseBuffers") {}
