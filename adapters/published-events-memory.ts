/** Published events in memory: for tests. */
import { Clock, Effect, Layer, PubSub, Stream } from "effect"
import {
  type Delivered,
  type Kept,
  type Published,
  PublishedEvents,
  PublishFailed,
  type Wanted,
} from "#projections/published-events.ts"

interface Held extends Kept {
  readonly published: Published
}

const fits = ({ service, type }: Wanted, { published }: Held) =>
  (service === undefined || published.service === service) &&
  (type === undefined || published.event.type === type)

export const publishedEventsMemory = Layer.effect(
  PublishedEvents,
  Effect.gen(function* () {
    const kept: Array<Held> = []
    const news = yield* PubSub.unbounded<void>()

    return PublishedEvents.of({
      last: Effect.sync(() => {
        const last = kept.at(-1)
        return last && { sequence: last.sequence, event: last.event }
      }),
      at: (sequence) =>
        Effect.sync(() => {
          const held = kept[sequence - 1]
          return held && { sequence, event: held.event, published_ms: held.published_ms }
        }),
      append: (events, after) =>
        Effect.gen(function* () {
          if (after !== kept.length) {
            return yield* new PublishFailed({ detail: `The last one is ${kept.length}.` })
          }
          const published_ms = yield* Clock.currentTimeMillis
          for (const published of events) {
            const sequence = kept.length + 1
            kept.push({ sequence, event: published.event, published_ms, published })
          }
          yield* PubSub.publish(news, undefined)
          return kept.length
        }),
      follow: (sequence, wanted) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const subscription = yield* PubSub.subscribe(news)
            let next = sequence
            const fresh = Effect.sync(() => {
              const stretch = kept.slice(next).filter((one) => fits(wanted, one))
              // Who asks beyond the end waits until it is reached.
              next = Math.max(next, kept.length)
              return stretch.map(({ sequence, event }): Delivered => ({ sequence, event }))
            })
            return Stream.concat(
              Stream.fromIterableEffect(fresh),
              Stream.flatMap(Stream.fromSubscription(subscription), () =>
                Stream.fromIterableEffect(fresh),
              ),
            )
          }),
        ),
    })
  }),
)
