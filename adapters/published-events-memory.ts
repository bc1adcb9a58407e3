/** Published events in memory: for tests. */
import { Clock, Effect, Layer, PubSub, Stream } from "effect"
import {
  type Delivered,
  EventsDiscarded,
  isWanted,
  type Kept,
  PublishedEvents,
  PublishFailed,
  type Wanted,
} from "#projections/published-events.ts"

/** What a test does to the stream from outside. */
export interface Tampering {
  /** Discards those before this number, as retention does. */
  readonly discard: (first: number) => Effect.Effect<void>
  /** Deletes the stream. */
  readonly lose: Effect.Effect<void>
}

type Failure = PublishFailed | EventsDiscarded

const lost = new PublishFailed({ detail: "There is no stream." })

/** The stream, and what a test can do to it. */
export const makeMemory = Effect.gen(function* () {
  let kept: Array<Kept> = []
  let last = 0
  let is_lost = false
  /** Counts the streams there were. */
  let made = 0
  const news = yield* PubSub.unbounded<void>()
  const told = PubSub.publish(news, undefined)
  const first = () => kept[0]?.sequence ?? last + 1
  const at = (sequence: number) => kept[sequence - first()]

  const follow = (sequence: number, wanted: Wanted) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const subscription = yield* PubSub.subscribe(news)
        const own = made
        let after = sequence
        const fresh = Effect.suspend((): Effect.Effect<Array<Delivered>, Failure> => {
          if (is_lost || made !== own) return Effect.fail(lost)
          if (after + 1 < first()) return Effect.fail(new EventsDiscarded({ after }))
          const some = kept.filter((one) => one.sequence > after)
          // Who asks beyond the end waits until it is reached.
          after = Math.max(after, last)
          return Effect.succeed(
            some
              .filter(({ event }) => isWanted(wanted, event))
              .map(({ sequence, event }): Delivered => ({ sequence, event })),
          )
        })
        return Stream.concat(
          Stream.fromIterableEffect(fresh),
          Stream.flatMap(Stream.fromSubscription(subscription), () =>
            Stream.fromIterableEffect(fresh),
          ),
        )
      }),
    )

  const tampering: Tampering = {
    discard: (from) =>
      Effect.sync(() => {
        kept = kept.filter(({ sequence }) => sequence >= from)
      }),
    lose: Effect.andThen(
      Effect.sync(() => {
        kept = []
        last = 0
        is_lost = true
      }),
      told,
    ),
  }
  const published = PublishedEvents.of({
    bounds: Effect.sync(() => (is_lost ? undefined : { first: first(), last })),
    last: Effect.sync(() => {
      const found = at(last)
      return found && { sequence: found.sequence, event: found.event }
    }),
    at: (sequence) => Effect.sync(() => at(sequence)),
    append: (events, after) =>
      Effect.gen(function* () {
        if (is_lost) return yield* lost
        if (after !== last) return yield* new PublishFailed({ detail: `The last one is ${last}.` })
        const published_ms = yield* Clock.currentTimeMillis
        for (const { event } of events) kept.push({ sequence: ++last, event, published_ms })
        yield* told
        return last
      }),
    follow,
    ready: Effect.suspend(() => (is_lost ? Effect.fail(lost) : Effect.void)),
    remake: (after) =>
      Effect.andThen(
        Effect.sync(() => {
          kept = []
          last = after
          is_lost = false
          made++
        }),
        told,
      ),
  })
  return { published, tampering }
})

export const publishedEventsMemory = Layer.effect(
  PublishedEvents,
  Effect.map(makeMemory, ({ published }) => published),
)
