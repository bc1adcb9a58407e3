/** The published events, for the deliverer of webhooks. */
import { Effect, Layer, Stream } from "effect"
import { EventsUnavailable, WebhookEvents } from "#actors/system/webhooks/events.ts"
import { PublishedHistory } from "#projections/published/history.ts"
import type { PublishFailed } from "#projections/published-events.ts"

const unavailable = ({ detail }: PublishFailed) => new EventsUnavailable({ detail })

export const webhookEvents = Layer.effect(
  WebhookEvents,
  Effect.map(PublishedHistory, ({ follow, at, resume }) =>
    WebhookEvents.of({
      resume: (state) => Effect.mapError(resume(state), unavailable),
      follow: (sequence, wanted) => Stream.mapError(follow(sequence, wanted), unavailable),
      at: (sequence) => Effect.mapError(at(sequence), unavailable),
    }),
  ),
)
