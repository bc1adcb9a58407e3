/**
 * The JetStream adapters on three real nats-servers with three replicas of everything: the same
 * contracts as on one server, and failures that only a cluster can have.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Schedule, Stream } from "effect"
import { afterAll, beforeAll } from "vitest"
import { leasesJetStream } from "#adapters/leases/jetstream.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { webhookCursorsJetStream } from "#adapters/system/webhook/cursors-jetstream.ts"
import { connectBus, EventsConnection, findStream, NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { logJetStream } from "#journal"
import { logContract } from "../../contract/log.ts"
import { a, collect, textOf, write } from "../../contract/log-commits.ts"
import { publishedEventsContract } from "../../contract/published-events.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { network } from "../../world/server/gate.ts"
import {
  type BusName,
  type NatsCluster,
  startNatsCluster,
} from "../../world/server/nats-cluster.ts"
import { cleanUp, until } from "../../world/server/server.ts"

const timeout_ms = 120_000
const replicas = 3

const net = network()
let cluster: NatsCluster
/** The URLs of all three servers, behind gates of these tests. */
let all: ReadonlyArray<string> = []

/**
 * A connection to these servers, closed with the scope. Without log output, because servers stop
 * here.
 */
const connected = (servers: ReadonlyArray<string>) =>
  connectBus({ servers, login: {} }).pipe(Effect.provide(Logger.layer([])))

const busOf = (servers: () => ReadonlyArray<string>) =>
  Layer.merge(
    Layer.effect(
      NatsConnection,
      Effect.suspend(() => connected(servers())),
    ),
    Layer.effect(
      EventsConnection,
      Effect.suspend(() => connected(servers())),
    ),
  )

const bus = busOf(() => all)
const direct = (name: BusName) => [cluster.bus(name).url()]

const resumeAll = () => {
  for (const one of cluster.buses) one.resume()
}

const always = () => true
const never = () => false

let streams = 0

const logOf = (stream: string, copies = replicas) =>
  Layer.fresh(logJetStream({ stream, head: stream.toLowerCase(), replicas: copies }))

/** Removes a stream that the next test recreates. */
const without = (stream: string) =>
  Effect.flatMap(NatsConnection, ({ jsm }) =>
    Effect.promise(() => jsm.streams.delete(stream).catch(() => false)),
  )

/** Writes like a command host: looks for its command after an unknown outcome. */
const writeOnce = (to: string, command: string) =>
  Effect.gen(function* () {
    const last = yield* (yield* Log).load(to)
    return last?.commit.commands.includes(command) ? last.position : yield* write(to, command)
  }).pipe(Effect.retry({ schedule: Schedule.spaced(20), times: 3_000 }))

const leaderOf = (stream: string) =>
  Effect.gen(function* () {
    const { jsm } = yield* NatsConnection
    const info = yield* findStream(jsm, stream)
    const leader = info?.cluster?.leader
    const [follower] = cluster.buses.filter(({ name }) => name !== leader)
    assert.isDefined(follower)
    return { leader: cluster.bus(leader as BusName), follower: follower ?? cluster.bus("nats-1") }
  })

describeWithServer("three nats-servers", () => {
  beforeAll(async () => {
    cluster = await startNatsCluster(net)
    all = (await cluster.urlFor("test")).split(",")
  }, timeout_ms)
  afterAll(async () => {
    net.heal()
    await cluster?.stop()
    await cleanUp()
  }, timeout_ms)

  logContract((name, body) =>
    it.live(`a log of three copies: ${name}`, () =>
      Effect.provide(body, logOf(`LOG_R3_${++streams}`).pipe(Layer.provide(bus))),
    ),
  )

  publishedEventsContract(() =>
    Layer.fresh(
      Layer.unwrap(Effect.as(without("ALMANAC_EVENTS"), publishedEventsJetStream(replicas))),
    ).pipe(Layer.provide(bus)),
  )

  it.live("a log of one copy gets three, and goes on", () =>
    Effect.gen(function* () {
      const stream = "LOG_RAISED"
      yield* Effect.provide(write(a, "one"), logOf(stream, 1))
      yield* Effect.provide(writeOnce(a, "two"), logOf(stream))
      const { jsm } = yield* NatsConnection
      const raised = findStream(jsm, stream).pipe(
        Effect.map((info) => info?.cluster?.replicas?.filter(({ current }) => current).length),
        Effect.repeat({ until: (copies) => copies === 2, schedule: Schedule.spaced(100) }),
      )
      assert.strictEqual(yield* raised, 2)
      const read = Effect.flatMap(Log, (log) => collect(log.read(a)))
      assert.deepEqual((yield* Effect.provide(read, logOf(stream))).map(textOf), ["one", "two"])
    }).pipe(Effect.provide(bus)),
  )

  it.live(
    "what is refused is not refused by a copy that is behind",
    () =>
      Effect.gen(function* () {
        const stream = "LOG_BEHIND"
        yield* Effect.provide(write(a, "old"), logOf(stream))
        const { leader, follower } = yield* leaderOf(stream)
        const behind = busOf(() => direct(follower.name))
        const ahead = busOf(() => direct(leader.name))
        yield* Effect.gen(function* () {
          const log = yield* Log
          assert.strictEqual((yield* log.load(a))?.commit.commands.at(-1), "old")
          // Cut off only from the other servers: its clients still reach it.
          cluster.cutOff(follower.name)
          yield* Effect.provide(write(a, "new"), Layer.provide(logOf(stream), ahead))
          const seen = yield* Effect.result(log.load(a))
          const result = seen._tag === "Success" ? seen.success?.commit.commands.at(-1) : seen._tag
          assert.strictEqual(result, "Failure")
          net.heal()
          const found = yield* Effect.retry(log.load(a), { times: 10 })
          assert.strictEqual(found?.commit.commands.at(-1), "new")
        }).pipe(Effect.provide(Layer.provide(logOf(stream), behind)))
      }).pipe(Effect.provide(bus), Effect.ensuring(Effect.sync(net.heal))),
    timeout_ms,
  )

  it.live(
    "a client with much to send leaves a paused server",
    () =>
      Effect.gen(function* () {
        const { connection } = yield* NatsConnection
        const name = connection.info?.server_name as BusName
        cluster.bus(name).pause()
        // More than the kernel buffers for a reader that does not read.
        for (let n = 0; n < 64; n++) connection.publish("nobody", new Uint8Array(500_000))
        yield* Effect.promise(() =>
          until("another server", timeout_ms, () => connection.info?.server_name !== name),
        )
        yield* Effect.promise(() =>
          until("an answer", timeout_ms, () => connection.flush().then(always, never)),
        )
      }).pipe(Effect.provide(bus), Effect.ensuring(Effect.sync(resumeAll))),
    timeout_ms,
  )

  it.live(
    "streams are created while any one of the servers is paused, which gets them later",
    () =>
      Effect.gen(function* () {
        const [first] = cluster.buses
        assert.isDefined(first)
        first?.pause()
        const made = Layer.mergeAll(
          logOf("LOG_SLOW"),
          leasesJetStream({ bucket: "slow", holder: "test", ttl_ms: 1_000, replicas }),
          webhookCursorsJetStream(replicas),
        )
        const others = busOf(() => [...direct("nats-2"), ...direct("nats-3")])
        yield* Effect.gen(function* () {
          yield* write(a, "made")
          first?.resume()
          const { jsm } = yield* NatsConnection
          const whole = findStream(jsm, "LOG_SLOW").pipe(
            Effect.map((info) => info?.cluster?.replicas?.every(({ current }) => current)),
            Effect.repeat({
              until: (is_whole) => is_whole === true,
              schedule: Schedule.spaced(50),
            }),
          )
          assert.isTrue(yield* whole)
        }).pipe(Effect.provide(Layer.provideMerge(made, others)))
      }).pipe(Effect.ensuring(Effect.sync(resumeAll))),
    timeout_ms,
  )

  it.live(
    "readers and publishers go on when the leader is killed in the middle, without gap or double",
    () =>
      Effect.gen(function* () {
        const stream = "LOG_LED"
        const log = yield* Effect.provide(Log, yield* Layer.build(logOf(stream)))
        const seen: Array<number> = []
        const reading = yield* Effect.forkChild(
          Stream.runForEachArray(log.follow("", 0), (page) =>
            Effect.sync(() => seen.push(...page.map(({ position }) => position))),
          ),
        )
        const writing = Effect.forEach(
          Array.from({ length: 400 }, (_, n) => `test.many.w${n}`),
          (to) => Effect.provideService(writeOnce(to, to), Log, log),
          { concurrency: 8 },
        )
        const writer = yield* Effect.forkChild(writing)
        yield* Effect.promise(() => until("some commits", timeout_ms, () => seen.length > 50))
        const { leader } = yield* leaderOf(stream)
        yield* Effect.promise(() => leader.kill())
        yield* Fiber.join(writer)
        yield* Effect.promise(() => until("all commits", timeout_ms, () => seen.length >= 400))
        assert.deepEqual(
          seen,
          seen.map((_, n) => n + 1),
        )
        assert.strictEqual(seen.length, 400)
        yield* Fiber.interrupt(reading)
        yield* Effect.promise(() => leader.start())
      }).pipe(Effect.provide(bus), Effect.scoped),
    timeout_ms,
  )
})
