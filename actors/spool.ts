/**
 * The port to a spool: facts of completed requests that are not in the log yet.
 *
 * A request adds its fact and continues; a process moves the facts to the log in order. So requests
 * neither wait for the log nor fail with it. Source: decisions, facts of searches and predictions.
 */
import { type Effect, Schema } from "effect"

export interface Spooled<Fact> {
  /** Its position in the spool; it increases, with gaps if facts were lost with a disk. */
  readonly cursor: number
  readonly fact: Fact
}

/** The spool cannot be read or written. */
export class SpoolFailed extends Schema.TaggedError<SpoolFailed>()("SpoolFailed", {
  detail: Schema.String,
}) {}

export interface Spool<Fact> {
  /** A UUID that changes when the spool is recreated. Cursors are unique within an epoch. */
  readonly epoch: string
  /** Stores a fact in the background, within moments. Failures are logged. */
  readonly add: (fact: Fact) => Effect.Effect<void>
  /** Facts after a cursor, in order, including those that are still being written. */
  readonly scan: (
    after: number,
    max: number,
  ) => Effect.Effect<ReadonlyArray<Spooled<Fact>>, SpoolFailed>
  /** Deletes facts up to this cursor, which the log has recorded. */
  readonly acknowledge: (cursor: number) => Effect.Effect<void, SpoolFailed>
}
