// The JetStream publisher when it is killed, when servers die, and with competing publishers.
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Schedule, Schema, Stream } from "effect"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { connectBus, EventsConnection, NatsServer } from "#bus"
import { type Append, Log } from "#events/log.ts"
import { logJetStream } from "#journal"
import { publisher } from "#projections/published/publisher.ts"
import { PublishedEvents, publication, publishedOf } from "#projections/published-events.ts"
import { message } from "#schemas/message.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"
import { proxy } from "../../world/proxy.ts"
import { publishingOf } from "../../world/publishing.ts"
import { type Seeded, seeded } from "../../world/seeded.ts"

const Noted = message("Noted", { n: Schema.Int })

/** Padding for each event, so that the events of one commit do not fit into one packet. */
const padding = "x".repeat(2_000)

/** Every fifth event stays internal. */
const publications = [
  publication({
    part: "test.note",
    event: Noted,
    toDraft: ({ n }) => (n % 5 === 0 ? undefined : { type: "noted", data: { n, padding } }),
  }),
]

const published = publishedEventsJetStream(1)
/** Without log output: the tests kill servers on purpose. */
const all = Layer.provideMerge(
  Layer.merge(logJetStream({ stream: "LOG_PUBLISHER" }), published),
  nats,
).pipe(Layer.provideMerge(Logger.layer([])))

type Events = PublishedEvents["Service"]

const patient = { schedule: Schedule.spaced(20), times: 1000 } as const

/** Writes a commit with these numbers as the first of its stream, once. */
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
      prev: log.hashOf(stream),
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

/** A separate connection that a test can cut, and the publisher that uses it. */
const another = Effect.gen(function* () {
  const server = yield* NatsServer
  const between = yield* proxy(server.servers[0] ?? "")
  const login = { servers: [between.url], login: server.publisher }
  const bus = Layer.succeed(EventsConnection, yield* connectBus(login))
  const layer = Layer.fresh(published.pipe(Layer.provide(bus)))
  const events = yield* Effect.provide(PublishedEvents, yield* Layer.build(layer))
  return { between, events }
})

/** The same publisher, but a fault occurs during every third append. */
const sabotaged = (events: Events, { between }: Seeded, fault: Effect.Effect<void>) =>
  PublishedEvents.of({
    ...events,
    append: (some, after) => {
      const append = events.append(some, after)
      if (between(1, 3) > 1) return append
      const late = Effect.andThen(Effect.sleep(between(0, 8)), fault)
      return Effect.andThen(Effect.forkDetach(late), append)
    },
  })

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** The expected publications: the log's events in order, without the internal ones. */
const wanted = Effect.gen(function* () {
  const commits = yield* Effect.retry(
    Effect.flatMap(Log, (log) => Stream.runCollect(log.read(""))),
    patient,
  )
  return commits.flatMap((commit) => publishedOf(publications, commit).map(({ event }) => event))
})

/** The published events, once the last one has arrived. */
const found = Effect.fnUntraced(function* (count: number) {
  const events = yield* PublishedEvents
  yield* Effect.flatMap(events.last, (last) =>
    (last?.sequence ?? 0) >= count ? Effect.void : Effect.fail("not yet"),
  ).pipe(Effect.retry(patient))
  const delivered = yield* Stream.runCollect(Stream.take(events.follow(0, {}), count))
  assert.deepEqual(
    delivered.map(({ sequence }) => sequence),
    numbers(count),
  )
  return delivered.map(({ event }) => event)
})

/** Publishers that start and stop. */
const crowd = () => {
  const running: Array<Fiber.Fiber<unknown, unknown>> = []
  return {
    start: (events: Events) =>
      Effect.map(
        Effect.forkScoped(
          Effect.provideService(publisher(publishingOf(publications)), PublishedEvents, events),
        ),
        (fiber) => {
          running.push(fiber)
        },
      ),
    /** Stops the publisher at this index, if any. */
    end: (place: number) => Effect.forEach(running.splice(place, 1), Fiber.interrupt),
  }
}

describeWithServer("the publisher on JetStream", () => {
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it.live(`publishes each event once and in order, under random faults (seed ${seed})`, () =>
      Effect.gen(function* () {
        const random = seeded(seed)
        const { between, pick } = random
        const direct = yield* PublishedEvents
        const [one, two] = yield* Effect.all([another, another])
        const killed = Effect.provideContext(kill, yield* Effect.context<NatsServer>())
        const { start, end } = crowd()
        const publishers = [
          sabotaged(one.events, random, Effect.sync(one.between.cut)),
          sabotaged(two.events, random, Effect.sync(two.between.swallow)),
          sabotaged(direct, random, between(1, 2) === 1 ? killed : Effect.void),
        ] as const
        const steps = [
          Effect.suspend(() => start(pick(publishers))),
          Effect.suspend(() => end(between(0, 3))),
          Effect.sync(() => two.between.cut()),
        ] as const
        yield* start(publishers[0])
        const writing = yield* Effect.forEach(numbers(60), (i) => {
          const events = Array.from({ length: between(1, 300) }, (_, n) => 1000 * i + n)
          const written = Effect.forkScoped(write(`s${i}`, events))
          const kills = i % 20 === 10 ? kill : Effect.void
          const pause = Effect.suspend(() => Effect.sleep(between(0, 20)))
          return Effect.andThen(
            Effect.suspend(() => pick(steps)),
            kills,
          ).pipe(Effect.andThen(pause), Effect.andThen(written))
        })
        yield* Fiber.joinAll(writing)
        yield* start(direct)

        const events = yield* wanted
        assert.isAbove(events.length, 3000)
        assert.deepEqual(yield* found(events.length), events)
        assert.strictEqual((yield* direct.last)?.sequence, events.length)
      }).pipe(Effect.scoped, Effect.provide(all)),
    )
  }

  it.live("publishes again what a killed server had taken and lost, though nothing new comes", () =>
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      // At first it accepts without storing, like a server that dies before it writes.
      let lost = 0
      const forgetful = PublishedEvents.of({
        ...events,
        append: (some, after) => {
          if (lost > 0) return events.append(some, after)
          lost = some.length
          return Effect.succeed(after + some.length)
        },
      })
      yield* write("a", [1, 2, 3])
      yield* Effect.forkScoped(
        Effect.provideService(publisher(publishingOf(publications)), PublishedEvents, forgetful),
      )
      assert.deepEqual(
        (yield* found(3)).map(({ data }) => data.n),
        [1, 2, 3],
      )
      assert.strictEqual(lost, 3)
    }).pipe(Effect.scoped, Effect.provide(all)),
  )

  it.live("waits at what it cannot read, and publishes nothing beyond it", () =>
    Effect.gen(function* () {
      let tries = 0
      // How a release handles an event of a later release.
      const older = publication({
        part: "test.note",
        event: Noted,
        toDraft: ({ n }) => {
          if (n !== 13) return { type: "noted", data: { n } }
          tries++
          throw new Error("Expected a Noted of before 13.")
        },
      })
      yield* write("a", [1, 2])
      const first = yield* Effect.forkScoped(publisher(publishingOf([older])))
      yield* found(2)
      yield* write("b", [13])
      yield* write("c", [3])
      yield* Effect.retry(
        Effect.suspend(() => (tries > 1 ? Effect.void : Effect.fail("not yet"))),
        patient,
      )
      assert.strictEqual((yield* (yield* PublishedEvents).last)?.sequence, 2)
      yield* Fiber.interrupt(first)
      yield* Effect.forkScoped(publisher(publishingOf(publications)))
      assert.deepEqual(
        (yield* found(4)).map(({ data }) => data.n),
        [1, 2, 13, 3],
      )
    }).pipe(Effect.scoped, Effect.provide(all)),
  )
})
