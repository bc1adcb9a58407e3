// What the publisher on JetStream makes of being killed, of dead servers and of other publishers.
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Schedule, Schema, Scope, Stream } from "effect"
import { logJetStream } from "#adapters/log-jetstream.ts"
import { publisher_inbox } from "#adapters/nats-config.ts"
import { connectBus, EventsConnection } from "#adapters/nats-connection.ts"
import { NatsServer } from "#adapters/nats-server.ts"
import { publishedEventsJetStream } from "#adapters/published-events-jetstream.ts"
import { type Append, Log } from "#events/log.ts"
import {
  PublishedEvents,
  publication,
  publishedOf,
  publisher,
} from "#projections/published-events.ts"
import { message } from "#schemas/message.ts"
import { describeWithServer, nats } from "../nats.ts"
import { proxy } from "./proxy.ts"

const Noted = message("Noted", { n: Schema.Int })

/** Every fifth stays internal. */
const publications = [
  publication({
    part: "test.note",
    event: Noted,
    tell: ({ n }) => (n % 5 === 0 ? undefined : { type: "noted", data: { n } }),
  }),
]

const published = publishedEventsJetStream(1)
/** Without the log lines: servers die here on purpose. */
const all = Layer.provideMerge(
  Layer.merge(logJetStream({ stream: "LOG_PUBLISHER" }), published),
  nats,
).pipe(Layer.provide(Logger.layer([])))

const patient = { schedule: Schedule.spaced(20), times: 1000 } as const

/** Mulberry32. */
const seeded = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

/** Writes a commit of these numbers as the first of its stream, once. */
const write = Effect.fnUntraced(function* (id: string, numbers: ReadonlyArray<number>) {
  const log = yield* Log
  const stream = `test.note.${id}`
  const append: Append = {
    stream,
    expected: 0,
    commit: {
      v: 1,
      actor: "test",
      at: "2026-11-20T12:00:00.000Z",
      events: numbers.map((n) => Noted.make({ n })),
      snapshot: { machine: 1, value: "open", context: {} },
      commands: [id],
      prev: log.genesis(stream),
    },
  }
  yield* Effect.retry(
    Effect.flatMap(log.load(stream), (there) =>
      there === undefined ? log.append([append]) : Effect.succeed([]),
    ),
    patient,
  )
})

const kill = Effect.gen(function* () {
  const pid = yield* (yield* NatsServer).pid
  if (pid !== undefined) process.kill(pid, "SIGKILL")
})

/** A connection of its own that a test can cut, and the publisher behind it. */
const another = Effect.gen(function* () {
  const server = yield* NatsServer
  const between = yield* proxy(server.servers[0] ?? "")
  const login = { servers: [between.url], login: server.publisher, inbox: publisher_inbox }
  const bus = Layer.succeed(EventsConnection, yield* connectBus(login))
  const layer = Layer.fresh(published.pipe(Layer.provide(bus)))
  const events = yield* Effect.provide(PublishedEvents, yield* Layer.build(layer))
  return { between, events }
})

/** What must be published: the log's events in order, but for the internal ones. */
const wanted = Effect.gen(function* () {
  const commits = yield* Effect.retry(
    Effect.flatMap(Log, (log) => Stream.runCollect(log.read(""))),
    patient,
  )
  return commits.flatMap((commit) => publishedOf(publications, commit).map(({ event }) => event))
})

/** What is published, once the last one is there. */
const found = Effect.fnUntraced(function* (count: number) {
  const events = yield* PublishedEvents
  yield* Effect.flatMap(events.last, (last) =>
    (last?.sequence ?? 0) >= count ? Effect.void : Effect.fail("not yet"),
  ).pipe(Effect.retry(patient))
  const delivered = yield* Stream.runCollect(Stream.take(events.follow(0, {}), count))
  assert.deepEqual(
    delivered.map(({ sequence }) => sequence),
    Array.from({ length: count }, (_, i) => i + 1),
  )
  return delivered.map(({ event }) => event)
})

describeWithServer("the publisher on JetStream", () => {
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it.live(`publishes each event once and in order, whatever happens (seed ${seed})`, () =>
      Effect.gen(function* () {
        const random = seeded(seed)
        const direct = yield* PublishedEvents
        const others = yield* Effect.forEach([1, 2], () => another)
        const sizes = Array.from({ length: 40 }, () => random(60))
        const writing = yield* Effect.forkChild(
          Effect.forEach(
            sizes,
            (size, i) =>
              write(
                `s${i}`,
                Array.from({ length: size + 1 }, (_, n) => 100 * i + n),
              ),
            { concurrency: 4, discard: true },
          ),
        )

        const running: Array<Fiber.Fiber<unknown, unknown>> = []
        const start = (events: typeof direct) =>
          Effect.map(
            Effect.forkChild(
              Effect.provideService(publisher(publications), PublishedEvents, events),
            ),
            (fiber) => {
              running.push(fiber)
            },
          )
        const steps = [
          ...[start(direct), ...others.map(({ events }) => start(events))],
          ...[1, 2, 3].map(() =>
            Effect.suspend(() => {
              const [one] = running.splice(random(running.length + 1), 1)
              return one === undefined ? Effect.void : Fiber.interrupt(one)
            }),
          ),
          ...others.flatMap(({ between: { cut, swallow } }) => [
            Effect.sync(cut),
            Effect.andThen(
              Effect.sync(swallow),
              Effect.andThen(Effect.sleep(40), Effect.sync(cut)),
            ),
          ]),
        ]
        yield* start(direct)
        for (let step = 0; step < 30; step++) {
          yield* steps[random(steps.length)] ?? Effect.void
          if (step % 12 === 11) yield* kill
          yield* Effect.sleep(random(30))
        }
        yield* Fiber.join(writing)
        yield* start(direct)

        const events = yield* wanted
        assert.isAbove(events.length, 500)
        assert.deepEqual(yield* found(events.length), events)
        yield* Fiber.interruptAll(running)
        assert.strictEqual((yield* direct.last)?.sequence, events.length)
      }).pipe(Effect.scoped, Effect.provide(all)),
    )
  }

  it.live("publishes again what a killed server had taken and lost, though nothing new comes", () =>
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      // Takes without keeping, as a server that dies before it writes.
      let is_losing = true
      const forgetful = PublishedEvents.of({
        ...events,
        append: (some, after) =>
          is_losing ? Effect.succeed(after + some.length) : events.append(some, after),
      })
      yield* write("a", [1, 2, 3])
      yield* Effect.forkScoped(
        Effect.provideService(publisher(publications), PublishedEvents, forgetful),
      )
      yield* Effect.sleep(200)
      is_losing = false
      assert.deepEqual(
        (yield* found(3)).map(({ data }) => data),
        [{ n: 1 }, { n: 2 }, { n: 3 }],
      )
    }).pipe(Effect.scoped, Effect.provide(all)),
  )

  it.live("waits at what it cannot read, and publishes nothing beyond it", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.Scope
      const strict = [{ ...publications[0], part: "test", tell: unreadable }]
      yield* write("a", [1, 2])
      yield* write("b", [13])
      yield* write("c", [3])
      const first = yield* Effect.forkIn(publisher(strict), scope)
      assert.lengthOf(yield* found(2), 2)
      yield* Effect.sleep(600)
      assert.strictEqual((yield* (yield* PublishedEvents).last)?.sequence, 2)
      yield* Fiber.interrupt(first)
      yield* Effect.forkIn(publisher(publications), scope)
      assert.deepEqual(
        (yield* found(4)).map(({ data }) => data),
        [{ n: 1 }, { n: 2 }, { n: 13 }, { n: 3 }],
      )
    }).pipe(Effect.scoped, Effect.provide(all)),
  )
})

/** What a release does with an event of a later one. */
const unreadable = (event: { readonly type: string }) => {
  const { n } = Schema.decodeUnknownSync(Noted)(event)
  if (n === 13) throw new Error("Expected a Noted of before 13.")
  return { type: "noted", data: { n } }
}
