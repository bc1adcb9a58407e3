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
    /** Those after `sequence`, oldest first, and then each new one. It never ends. */
    readonly follow: (
      sequence: number,
      wanted: { readonly service?: string | undefined; readonly type?: string | undefined },
    ) => Stream.Stream<Placed, EventsUnavailable>
    /** The one at this place; undefined where there is none yet. */
    readonly at: (sequence: number) => Effect.Effect<CloudEvent | undefined, EventsUnavailable>
  }
>()("actors/WebhookEvents") {}
