/**
 * Facts that reach the log through a spool, as commands and events carry them.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

/** Facts in one command, and so events in one commit, at most: as of a node's blobs. */
export const facts_max = 500

const Cursor = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Epoch = Schema.String.check(Schema.isPattern(/^[\da-f-]{36}$/))

/** Where the fact of an event is in its spool: so the stream itself shows that none is missing. */
export const place = {
  /** The spool's own UUID. Its cursors mean nothing in another one. */
  epoch: Epoch,
  /** The cursor of the fact before it in the same epoch; 0 of the first. */
  after: Cursor,
  cursor: Cursor,
} as const

/** A command that records the facts after cursor `from`, in order. */
export const recording = <const Type extends string, Fact extends Schema.Top>(
  type: Type,
  fact: Fact,
) =>
  message(type, {
    epoch: Epoch,
    from: Cursor,
    facts: Schema.Array(Schema.Struct({ cursor: Cursor, fact })).check(
      Schema.isMaxLength(facts_max),
    ),
  })

/** The facts do not follow those that are recorded: read the cursor again. */
export class FactsOutOfOrder extends Schema.TaggedError<FactsOutOfOrder>()(
  "SpooledFactsOutOfOrder",
  { code: Schema.tag("FAILED_PRECONDITION"), detail: Schema.String },
) {}
