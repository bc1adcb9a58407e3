// Published events older than the retention of their stream, and a stream that is deleted
// meanwhile.
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schedule, Schema, Stream } from "effect"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { EventsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { logJetStream } from "#journal"
import { PublishedHistory } from "#projections/published/history.ts"
import { publisher } from "#projections/published/publisher.ts"
import { PublishedEvents, publication } from "#projections/published-events.ts"
import { message } from "#schemas/message.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"
import { publishingOf } from "../../world/publishing.ts"

const Noted = message("Noted", { n: Schema.Int })
const padding = "x".repeat(4_000)
const publishing = publishingOf([
  publication({
    part: "test.note",
    event: Noted,
    toDraft: ({ n }) => ({ type: "noted", data: { n, padding } }),
  }),
])

/** Room for one or two hundred of the events above. */
const retention = { bytes: 1024 ** 2, days: 1 }

const all = PublishedHistory.layer(publishing).pipe(
  Layer.provideMerge(
    Layer.merge(logJetStream({ stream: "LOG_RETENTION" }), publishedEventsJetStream(1, retention)),
  ),
  Layer.provideMerge(nats),
  Layer.provideMerge(Logger.layer([])),
)

const write = Effect.fnUntraced(function* (id: string, from: number, to: number) {
  const log = yield* Log
  const stream = `test.note.${id}`
  const events = Array.from({ length: to - from + 1 }, (_, i) => Noted.make({ n: from + i }))
  const commit = {
    v: 1 as const,
    actor: "test",
    at: "2026-11-20T12:00:00.000Z",
    events,
    snapshot: { machine: 1, value: "open", context: {} },
    commands: [id],
    prev: log.hashOf(stream),
  }
  yield* log.append([{ stream, expected: 0, commit }])
})

const reached = (count: number) =>
  Effect.flatMap(
    Effect.flatMap(PublishedEvents, ({ bounds }) => bounds),
    (bounds) => (bounds?.last === count ? Effect.succeed(bounds) : Effect.fail("not yet")),
  ).pipe(Effect.retry({ schedule: Schedule.spaced(50), times: 400 }))

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** Every event since the beginning, with its number. */
const read = Effect.fnUntraced(function* (count: number, after = 0) {
  const { follow } = yield* PublishedHistory
  const some = yield* Stream.runCollect(Stream.take(follow(after, {}), count))
  return some.map(({ sequence, event }) => [sequence, event.data.n])
})

describeWithServer("published events beyond what is kept", () => {
  it.live(
    "are published at the stream's limit, and read from the log, each once",
    () =>
      Effect.gen(function* () {
        yield* Effect.forkScoped(publisher(publishing))
        for (let i = 0; i < 10; i++) yield* write(`s${i}`, 50 * i + 1, 50 * i + 50)
        const { first } = yield* reached(500)
        assert.isAbove(first, 100)
        assert.deepEqual(
          yield* read(500),
          numbers(500).map((n) => [n, n]),
        )
        const { at } = yield* PublishedHistory
        assert.equal((yield* at(7))?.data.n, 7)
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(all))),
    60_000,
  )

  it.live(
    "are published again under the same numbers when the stream is deleted",
    () =>
      Effect.gen(function* () {
        const { jsm } = yield* EventsConnection
        yield* Effect.forkScoped(publisher(publishing))
        yield* write("a", 1, 20)
        yield* reached(20)
        yield* Effect.promise(() => jsm.streams.delete(events_stream))
        yield* reached(20)
        yield* write("b", 21, 30)
        yield* reached(30)
        assert.deepEqual(
          yield* read(15, 15),
          numbers(15).map((n) => [15 + n, 15 + n]),
        )
        const { epoch, after } = yield* (yield* PublishedHistory).resume({ sequence: 15 })
        const again = yield* (yield* PublishedHistory).resume({ epoch, sequence: after })
        assert.isUndefined(again.restored)
        const foreign = yield* (yield* PublishedHistory).resume({ epoch: "ffffffff", sequence: 9 })
        assert.equal(foreign.restored?.type, "state_restored")
        assert.equal(foreign.after, 0)
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(all))),
    60_000,
  )
})
