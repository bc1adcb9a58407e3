/** The published events, as the deliverer of webhooks reads them. */
import { Effect, Layer, Stream } from "effect"
import { EventsUnavailable, WebhookEvents } from "#actors/system/webhook-events.ts"
import { PublishedEvents, type PublishFailed } from "#projections/published-events.ts"

const unavailable = ({ detail }: PublishFailed) => new EventsUnavailable({ detail })

export const webhookEvents = Layer.effect(
  WebhookEvents,
  Effect.map(PublishedEvents, ({ follow, at }) =>
    WebhookEvents.of({
      follow: (sequence, wanted) => Stream.mapError(follow(sequence, wanted), unavailable),
      at: (sequence) =>
        at(sequence).pipe(
          Effect.mapError(unavailable),
          Effect.map((kept) => kept?.event),
        ),
    }),
  ),
)
