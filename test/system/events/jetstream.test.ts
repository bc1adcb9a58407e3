/** `GET /v1/events` over a real bus: buffering, released memory, and outages. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schedule, type Scope } from "effect"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { EventsConnection, NatsServer } from "#bus"
import { PublishedEvents } from "#projections/published-events.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"
import { historyAlone } from "../../world/publishing.ts"
import { publishedEvent, read, serveEvents, tell, until } from "../../world/system/events-served.ts"

const mib = 1024 ** 2
/**
 * Maximum bus data that the process buffers for one reader: twice its window, one part in transit.
 */
const held_bytes_max = 16 * mib
/** Additional data in the kernel buffers of both ends. */
const kernel_bytes_max = 16 * mib

const bus = Layer.provideMerge(historyAlone, publishedEventsJetStream(1)).pipe(
  Layer.provideMerge(nats),
  Layer.provideMerge(Logger.layer([])),
)

const live = (
  name: string,
  body: Effect.Effect<void, unknown, Layer.Success<typeof bus> | Scope.Scope>,
) => it.live(name, () => body.pipe(Effect.scoped, Effect.provide(Layer.fresh(bus))))

const consumers = Effect.gen(function* () {
  const { jsm } = yield* EventsConnection
  const { state } = yield* Effect.promise(() => jsm.streams.info(events_stream))
  // One consumer feeds the mirror of subscribers.
  return state.consumer_count - 1
})

const become = (count: number) =>
  Effect.flatMap(consumers, (now) => (now === count ? Effect.void : Effect.fail(`${now}`))).pipe(
    Effect.retry({ schedule: Schedule.spaced(20), times: 500 }),
  )

const promise = <A>(what: () => Promise<A>) => Effect.promise(what)
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

describeWithServer("GET /v1/events over JetStream", () => {
  live(
    "frees what it held for a client as soon as that one is gone",
    Effect.gen(function* () {
      const { url, inFlight } = yield* serveEvents
      yield* tell(publishedEvent(1))
      const readers = yield* promise(() => Promise.all(numbers(5).map(() => read(url, "admin", 0))))
      yield* promise(() => until(() => readers.every(({ blocks }) => blocks.length === 1)))
      yield* become(5)
      for (const { leave } of readers) leave()
      yield* become(0)
      yield* promise(() => until(() => inFlight() === 0))
    }),
  )

  live(
    "takes no more from the bus for a client that does not read, and misses nothing then",
    Effect.gen(function* () {
      const { url } = yield* serveEvents
      const { connection } = yield* EventsConnection
      const count = 4600
      const pad = "x".repeat(15_000)
      yield* tell(...numbers(count).map((n) => publishedEvent(n, { data: { pad } })))
      const before = connection.stats().inBytes
      const reader = yield* promise(() => read(url, "admin", 0))
      reader.pause()
      // Reading has stopped when a second passes without new bytes.
      let taken = 0
      yield* Effect.sync(() => connection.stats().inBytes - before).pipe(
        Effect.delay(1000),
        Effect.map((now) => {
          const is_quiet = now === taken && now > 0
          taken = now
          return is_quiet
        }),
        Effect.repeat({ until: (is_quiet) => is_quiet, times: 20 }),
      )
      const sent = reader.blocks.length * pad.length
      assert.isBelow(taken - sent, held_bytes_max + kernel_bytes_max)
      assert.isAbove(count * pad.length, 2 * (held_bytes_max + kernel_bytes_max))
      reader.resume()
      yield* promise(() => until(() => reader.blocks.length === count))
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        numbers(count),
      )
      reader.leave()
    }),
  )

  live(
    "goes on after nats-server was killed and started again, each event once",
    Effect.gen(function* () {
      const { url } = yield* serveEvents
      const server = yield* NatsServer
      const reader = yield* promise(() => read(url, "admin", 0))
      // Like the publisher: a killed server may have lost its last events.
      const tellUpTo = (end: number) =>
        Effect.gen(function* () {
          const kept = (yield* (yield* PublishedEvents).last)?.sequence ?? 0
          yield* tell(...numbers(end - kept).map((n) => publishedEvent(kept + n)))
        }).pipe(Effect.retry({ schedule: Schedule.spaced(50), times: 200 }))
      for (const end of [20, 40, 60]) {
        yield* tellUpTo(end)
        yield* promise(() => until(() => reader.blocks.length >= end))
        const pid = yield* server.pid
        if (pid !== undefined) process.kill(pid, "SIGKILL")
      }
      yield* tellUpTo(61)
      yield* promise(() => until(() => reader.blocks.length >= 61))
      assert.deepEqual(
        reader.blocks.map(({ id, event }) => [id, event.position]),
        numbers(61).map((n) => [n, n]),
      )
      reader.leave()
    }),
  )

  live(
    "waits beyond the end for what is not there yet",
    Effect.gen(function* () {
      const { url, inFlight } = yield* serveEvents
      yield* tell(publishedEvent(1))
      // The response starts once its position exists.
      const reading = read(url, "admin", 3)
      yield* promise(() => until(() => inFlight() > 0))
      yield* tell(publishedEvent(2), publishedEvent(3))
      yield* tell(publishedEvent(4))
      const reader = yield* promise(() => reading)
      yield* promise(() => until(() => reader.blocks.length > 0))
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        [4],
      )
      reader.leave()
    }),
  )
})
