/**
 * The port to the delivery cursors of webhooks.
 *
 * A cursor is saved after the deliveries that it covers. So a lost or outdated cursor causes
 * duplicate deliveries, but never a missed one.
 */
import { Context, type Effect, Schema } from "effect"

/** An event that was read and is not delivered. */
const Open = Schema.Struct({
  sequence: Schema.Int,
  /** Failed attempts. */
  attempts: Schema.Int,
  /** Failed attempts while the receiver accepted other events. */
  blamed: Schema.optionalKey(Schema.Int),
  /** True if an earlier event of its subject was abandoned. */
  is_behind: Schema.optionalKey(Schema.Boolean),
  /** Epoch milliseconds of the first failure, the last failure and the next attempt. */
  first_failed_ms: Schema.optionalKey(Schema.Int),
  last_failed_ms: Schema.optionalKey(Schema.Int),
  next_ms: Schema.optionalKey(Schema.Int),
})
export type Open = typeof Open.Type

export const WebhookCursor = Schema.Struct({
  /** The webhook's current replay. */
  replay: Schema.Int,
  /** The webhook's revision. */
  revision: Schema.optionalKey(Schema.Int),
  /** The log history of its sequences; absent in cursors from older releases. */
  epoch: Schema.optionalKey(Schema.String),
  /** Every event up to here is delivered, abandoned, not wanted, or in `open`. */
  read: Schema.Int,
  open: Schema.Array(Open),
  /** Epoch ms since every delivery of this revision has failed; null while they succeed. */
  failing_since_ms: Schema.NullOr(Schema.Int),
  last_success_ms: Schema.NullOr(Schema.Int),
  last_failure: Schema.NullOr(Schema.Struct({ at_ms: Schema.Int, detail: Schema.String })),
})
export type WebhookCursor = typeof WebhookCursor.Type

/** A cursor and its change number. */
export interface KeptCursor {
  readonly cursor: WebhookCursor
  readonly change: number
}

/** The cursors are unavailable, or another deliverer has changed this one. */
export class CursorsUnavailable extends Schema.TaggedError<CursorsUnavailable>()(
  "CursorsUnavailable",
  { detail: Schema.String },
) {}

export class WebhookCursors extends Context.Service<
  WebhookCursors,
  {
    readonly load: (id: string) => Effect.Effect<KeptCursor | undefined, CursorsUnavailable>
    /**
     * Saves a cursor durably if its change number is still `change` (0: not saved yet), and returns
     * the new number. So a deliverer that lost its lease cannot overwrite its successor's cursor.
     */
    readonly save: (
      id: string,
      cursor: WebhookCursor,
      change: number,
    ) => Effect.Effect<number, CursorsUnavailable>
    /** Deletes the cursor of a deleted webhook. */
    readonly forget: (id: string) => Effect.Effect<void, CursorsUnavailable>
  }
>()("actors/WebhookCursors") {}
