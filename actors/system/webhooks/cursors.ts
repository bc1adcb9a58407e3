/**
 * How far each webhook's deliverer has come: no fact, but what it would do again without it.
 *
 * A cursor is kept after what it tells of was done. So one that is lost, or older, makes deliveries
 * happen twice and never lets one be forgotten.
 */
import { Context, type Effect, Schema } from "effect"

/** An event that was read and is not delivered. */
const Open = Schema.Struct({
  sequence: Schema.Int,
  /** Tries that failed. */
  attempts: Schema.Int,
  /** Tries that failed while the receiver took other events. */
  blamed: Schema.optionalKey(Schema.Int),
  /** Whether an earlier event of its subject was given up. */
  is_behind: Schema.optionalKey(Schema.Boolean),
  /** Epoch milliseconds: of the first failure, the last, and before which it is not tried again. */
  first_failed_ms: Schema.optionalKey(Schema.Int),
  last_failed_ms: Schema.optionalKey(Schema.Int),
  next_ms: Schema.optionalKey(Schema.Int),
})
export type Open = typeof Open.Type

export const WebhookCursor = Schema.Struct({
  /** The replay that it is in. */
  replay: Schema.Int,
  /** The webhook's revision that it is of. */
  revision: Schema.optionalKey(Schema.Int),
  /** In which history of the log its sequences are; absent in cursors of before there were any. */
  epoch: Schema.optionalKey(Schema.String),
  /** Every event up to here is delivered, given up, not wanted, or open. */
  read: Schema.Int,
  open: Schema.Array(Open),
  /** Epoch ms since when every delivery of this revision failed; null while they succeed. */
  failing_since_ms: Schema.NullOr(Schema.Int),
  last_success_ms: Schema.NullOr(Schema.Int),
  last_failure: Schema.NullOr(Schema.Struct({ at_ms: Schema.Int, detail: Schema.String })),
})
export type WebhookCursor = typeof WebhookCursor.Type

/** A cursor and which change of it this is. */
export interface KeptCursor {
  readonly cursor: WebhookCursor
  readonly change: number
}

/** The cursors are out of reach, or another deliverer has changed this one. */
export class CursorsUnavailable extends Schema.TaggedError<CursorsUnavailable>()(
  "CursorsUnavailable",
  { detail: Schema.String },
) {}

export class WebhookCursors extends Context.Service<
  WebhookCursors,
  {
    readonly load: (id: string) => Effect.Effect<KeptCursor | undefined, CursorsUnavailable>
    /**
     * Keeps a cursor, durably, if its last change was `change` (0: it was never kept), and answers
     * which one this is. So a deliverer that was thought dead cannot undo what its successor did.
     */
    readonly save: (
      id: string,
      cursor: WebhookCursor,
      change: number,
    ) => Effect.Effect<number, CursorsUnavailable>
    /** Its webhook is gone. */
    readonly forget: (id: string) => Effect.Effect<void, CursorsUnavailable>
  }
>()("actors/WebhookCursors") {}
