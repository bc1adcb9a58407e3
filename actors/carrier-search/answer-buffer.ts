/**
 * The port to where an answer waits until it is whole: it is told as a whole or not at all, and
 * may be larger than memory should be. Source: decisions of document 3, carrier range.
 */
import { Context, type Effect, Schema, type Scope, type Stream } from "effect"

/** The answer cannot be kept, or not be read again: no room on the disk, say. */
export class BufferFailed extends Schema.TaggedError<BufferFailed>()("BufferFailed", {
  detail: Schema.String,
}) {}

export interface Buffered {
  /** Puts bytes behind those that are there; one call at a time. They must not change later. */
  readonly add: (bytes: Uint8Array) => Effect.Effect<void, BufferFailed>
  /** How many bytes there are. */
  readonly length: () => number
  /** The first so many bytes, in pieces. Nothing may be added any more. */
  readonly read: (length: number) => Stream.Stream<Uint8Array, BufferFailed>
}

export class AnswerBuffer extends Context.Service<
  AnswerBuffer,
  {
    /** An empty one, of which nothing is left when the scope closes, nor when the process dies. */
    readonly open: Effect.Effect<Buffered, never, Scope.Scope>
  }
>()("actors/carrier-search/AnswerBuffer") {}
