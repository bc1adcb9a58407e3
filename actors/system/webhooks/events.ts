/** The deliverer's port to the published events. */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** A published event and its sequence number: 1, 2, 3, … */
export interface Placed {
  readonly sequence: number
  readonly event: CloudEvent
}

/** The published events are unavailable. */
export class EventsUnavailable extends Schema.TaggedError<EventsUnavailable>()(
  "EventsUnavailable",
  { detail: Schema.String },
) {}

export class WebhookEvents extends Context.Service<
  WebhookEvents,
  {
    /**
     * The position to continue from: earlier than `was` if the log has since been restored to an
     * earlier state. Without an epoch, the position belongs to the current history.
     */
    readonly resume: (was: {
      readonly epoch?: string | undefined
      readonly sequence: number
    }) => Effect.Effect<{ readonly epoch: string; readonly after: number }, EventsUnavailable>
    /** Events after `sequence`, oldest first, and then each new one. It never ends. */
    readonly follow: (
      sequence: number,
      wanted: { readonly services: ReadonlyArray<string>; readonly types: ReadonlyArray<string> },
    ) => Stream.Stream<Placed, EventsUnavailable>
    /** The event at this position; undefined if it does not exist yet. */
    readonly at: (sequence: number) => Effect.Effect<CloudEvent | undefined, EventsUnavailable>
  }
>()("actors/WebhookEvents") {}
