/** Published events in memory: for tests. */
import { Clock, Effect, Layer, PubSub, Stream } from "effect"
import {
  type Delivered,
  type EventFilter,
  EventsDiscarded,
  matchesFilter,
  PublishedEvents,
  PublishFailed,
  type StoredEvent,
} from "#projections/published-events.ts"

/** External changes to the stream, for tests. */
export interface Tampering {
  /** Discards events before this sequence, as retention does. */
  readonly discard: (first: number) => Effect.Effect<void>
  /** Deletes the stream. */
  readonly lose: Effect.Effect<void>
}

type Failure = PublishFailed | EventsDiscarded

const lost = new PublishFailed({ detail: "The stream does not exist." })

interface Memory {
  events: Array<StoredEvent>
  last: number
  is_lost: boolean
  /** Number of streams created so far. */
  generation: number
}

const firstOf = ({ events, last }: Memory) => events[0]?.sequence ?? last + 1

/** Events after a sequence, then new ones, until the stream is replaced. */
const followStream =
  (stream: Memory, changes: PubSub.PubSub<void>) => (sequence: number, wanted: EventFilter) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const subscription = yield* PubSub.subscribe(changes)
        const generation = stream.generation
        let after = sequence
        const newEvents = Effect.suspend((): Effect.Effect<Array<Delivered>, Failure> => {
          if (stream.is_lost || stream.generation !== generation) return Effect.fail(lost)
          if (after + 1 < firstOf(stream)) return Effect.fail(new EventsDiscarded({ after }))
          const newer = stream.events.filter((one) => one.sequence > after)
          // A read beyond the end waits until it is reached.
          after = Math.max(after, stream.last)
          return Effect.succeed(
            newer
              .filter(({ event }) => matchesFilter(wanted, event))
              .map(({ sequence, event }): Delivered => ({ sequence, event })),
          )
        })
        return Stream.concat(
          Stream.fromIterableEffect(newEvents),
          Stream.flatMap(Stream.fromSubscription(subscription), () =>
            Stream.fromIterableEffect(newEvents),
          ),
        )
      }),
    )

/** The stream and its test controls. */
export const makeMemory = Effect.gen(function* () {
  const stream: Memory = { events: [], last: 0, is_lost: false, generation: 0 }
  const changes = yield* PubSub.unbounded<void>()
  const signal = PubSub.publish(changes, undefined)
  const first = () => firstOf(stream)
  const at = (sequence: number) => stream.events[sequence - first()]

  const tampering: Tampering = {
    discard: (from) =>
      Effect.sync(() => {
        stream.events = stream.events.filter(({ sequence }) => sequence >= from)
      }),
    lose: Effect.andThen(
      Effect.sync(() => {
        stream.events = []
        stream.last = 0
        stream.is_lost = true
      }),
      signal,
    ),
  }
  const published = PublishedEvents.of({
    bounds: Effect.sync(() => (stream.is_lost ? undefined : { first: first(), last: stream.last })),
    last: Effect.sync(() => {
      const found = at(stream.last)
      return found && { sequence: found.sequence, event: found.event }
    }),
    at: (sequence) => Effect.sync(() => at(sequence)),
    next: (sequence, wanted) =>
      Effect.sync(() =>
        stream.events.find((one) => one.sequence > sequence && matchesFilter(wanted, one.event)),
      ),
    append: (events, after) =>
      Effect.gen(function* () {
        if (stream.is_lost) return yield* lost
        if (after !== stream.last)
          return yield* new PublishFailed({ detail: `The last one is ${stream.last}.` })
        const published_ms = yield* Clock.currentTimeMillis
        for (const { event } of events)
          stream.events.push({ sequence: ++stream.last, event, published_ms })
        yield* signal
        return stream.last
      }),
    follow: followStream(stream, changes),
    ready: Effect.suspend(() => (stream.is_lost ? Effect.fail(lost) : Effect.void)),
    recreate: (after) =>
      Effect.andThen(
        Effect.sync(() => {
          stream.events = []
          stream.last = after
          stream.is_lost = false
          stream.generation++
        }),
        signal,
      ),
  })
  return { published, tampering }
})

export const publishedEventsMemory = Layer.effect(
  PublishedEvents,
  Effect.map(makeMemory, ({ published }) => published),
)
