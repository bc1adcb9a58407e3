/** The port to the published events, as those who deliver them need it. */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** A published event at its place among all: 1, 2, 3, … */
export interface Placed {
  readonly sequence: number
  readonly event: CloudEvent
}

/** The published events cannot be read now. */
export class EventsUnavailable extends Schema.TaggedError<EventsUnavailable>()(
  "EventsUnavailable",
  { detail: Schema.String },
) {}

export class WebhookEvents extends Context.Service<
  WebhookEvents,
  {
    /**
     * Where a deliverer goes on that had come to this place: before it, where the log was restored
     * to an earlier state meanwhile. Without an epoch the place is one of the present.
     */
    readonly resume: (was: {
      readonly epoch?: string | undefined
      readonly sequence: number
    }) => Effect.Effect<{ readonly epoch: string; readonly after: number }, EventsUnavailable>
    /** Those after `sequence`, oldest first, and then each new one. It never ends. */
    readonly follow: (
      sequence: number,
      wanted: { readonly services: ReadonlyArray<string>; readonly types: ReadonlyArray<string> },
    ) => Stream.Stream<Placed, EventsUnavailable>
    /** The one at this place; undefined where there is none yet. */
    readonly at: (sequence: number) => Effect.Effect<CloudEvent | undefined, EventsUnavailable>
  }
>()("actors/WebhookEvents") {}
