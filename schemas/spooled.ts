/**
 * Spooled facts in commands and events.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

/** Maximum number of facts per command, and so of events per commit: the same as for blobs. */
export const facts_max = 500

const Cursor = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Epoch = Schema.String.check(Schema.isPattern(/^[\da-f-]{36}$/u))

/** A fact's position in its spool, which shows that the stream has no gaps. */
export const place = {
  /** The UUID of the spool; cursors are only valid within it. */
  epoch: Epoch,
  /** The cursor of the previous fact of the epoch; 0 for the first. */
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

/** The facts do not follow the recorded ones: read the cursor again. */
export class FactsOutOfOrder extends Schema.TaggedError<FactsOutOfOrder>()(
  "SpooledFactsOutOfOrder",
  { code: Schema.tag("FAILED_PRECONDITION"), detail: Schema.String },
) {}
