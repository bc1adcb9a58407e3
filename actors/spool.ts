/**
 * The port to a spool: facts that were answered to somebody and are on their way into the log.
 *
 * A request puts its fact here and goes on; a process takes them to the log in order. So a request
 * never waits for the log, nor fails with it. Source: decisions, facts of searches and predictions.
 */
import { type Effect, Schema } from "effect"

export interface Spooled<Fact> {
  /** Its place in the spool; rises, with gaps where facts were lost with a disk. */
  readonly cursor: number
  readonly fact: Fact
}

/** The spool cannot be read or written. */
export class SpoolFailed extends Schema.TaggedError<SpoolFailed>()("SpoolFailed", {
  detail: Schema.String,
}) {}

export interface Spool<Fact> {
  /** Within one epoch no cursor is used twice: a UUID, another one where the spool begins anew. */
  readonly epoch: string
  /** Kept within moments, in the background; what cannot be kept is logged, and nothing fails. */
  readonly add: (fact: Fact) => Effect.Effect<void>
  /** Facts after a cursor, in order, those included that are still being kept. */
  readonly scan: (
    after: number,
    max: number,
  ) => Effect.Effect<ReadonlyArray<Spooled<Fact>>, SpoolFailed>
  /** The log has all up to this cursor: they are forgotten here. */
  readonly acknowledge: (cursor: number) => Effect.Effect<void, SpoolFailed>
}
