// The JetStream log under lost responses, dead servers and readers that leave.
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Schedule, Stream } from "effect"
import { connectBus, NatsConnection, NatsServer } from "#bus"
import { Log, type Recorded } from "#events/log.ts"
import { logJetStream } from "#journal"
import { a, b, collect, first, next, textOf, write } from "../../contract/log-commits.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"
import { proxy } from "../../world/proxy.ts"

const stream = "LOG_FAULTS"
const log = logJetStream({ stream })
/** Without log output: the tests kill servers on purpose. */
const all = Layer.provideMerge(log, nats).pipe(Layer.provide(Logger.layer([])))
/** Polls every 20 ms, for at most 10 s. */
const until = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  condition.pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced(20), times: 500 }),
    Effect.tap((met) => Effect.sync(() => assert.isTrue(met))),
  )

/** A log whose connection goes through a proxy. */
const proxied = Effect.gen(function* () {
  const server = yield* NatsServer
  const between = yield* proxy(server.servers[0] ?? "")
  const bus = yield* connectBus({ servers: [between.url], login: server.core })
  const through = log.pipe(Layer.provide(Layer.succeed(NatsConnection, bus)))
  return { between, log: yield* Effect.provide(Log, yield* Layer.build(Layer.fresh(through))) }
})

const consumers = Effect.gen(function* () {
  const { jsm } = yield* NatsConnection
  const { state } = yield* Effect.promise(() => jsm.streams.info(stream))
  return state.consumer_count
})

/** Kills the running server, as the kernel would. */
const kill = Effect.gen(function* () {
  const server = yield* NatsServer
  const pid = yield* server.pid
  if (pid !== undefined) process.kill(pid, "SIGKILL")
})

/** Writes like a command host: looks for its command after an unknown outcome. */
const writeOnce = (to: string, command: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    const last = yield* log.load(to)
    return last?.commit.commands.includes(command) ? last.position : yield* write(to, command)
  }).pipe(Effect.retry({ schedule: Schedule.spaced(20), times: 500 }))

/** One command that changes two aggregates, written in the same way. */
const writePair = ([left, right]: readonly [string, string], command: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    const last = yield* log.load(left)
    if (last?.commit.commands.includes(command)) return
    yield* log.append([yield* next(left, command), yield* next(right, command)])
  }).pipe(Effect.retry({ schedule: Schedule.spaced(20), times: 500 }))

const places = (commits: ReadonlyArray<Recorded>) => commits.map(({ position }) => position)

describeWithServer("the log on JetStream, when something is lost", () => {
  for (const [what, lose] of [
    ["swallowed and the connection cut", true],
    ["swallowed and nothing else happens", false],
  ] as const) {
    it.live(`an answer that is ${what} is an unknown outcome, and the commit is there once`, () =>
      Effect.gen(function* () {
        const direct = yield* Log
        const { between, log } = yield* proxied
        yield* Effect.provideService(write(b, "warm"), Log, log)
        between.swallow()
        const append = yield* first(a, "lost")
        const appending = yield* Effect.forkChild(Effect.flip(log.append([append])))
        yield* until(Effect.map(direct.load(a), (last) => last !== undefined))
        if (lose) between.cut()
        assert.strictEqual((yield* Fiber.join(appending))._tag, "OutcomeUnknown")
        between.cut()
        const found = yield* log.load(a)
        assert.deepEqual(found?.commit.commands, ["lost"])
        assert.strictEqual((yield* Effect.flip(log.append([append])))._tag, "VersionConflict")
        assert.deepEqual((yield* collect(log.read(a))).map(textOf), ["lost"])
      }).pipe(Effect.provide(all)),
    )
  }

  it.live("what waits for a server that does not come back is given up, and never written", () =>
    Effect.gen(function* () {
      const direct = yield* Log
      const { between, log } = yield* proxied
      yield* Effect.provideService(write(b, "warm"), Log, log)
      const append = yield* first(a, "late")
      between.refuse()
      const [error, unread] = yield* Effect.all(
        [
          Effect.flip(Effect.andThen(Effect.sleep(100), log.append([append]))),
          Effect.flip(Effect.andThen(Effect.sleep(100), log.load(b))),
        ],
        { concurrency: "unbounded" },
      )
      assert.strictEqual(error._tag, "LogUnavailable")
      assert.strictEqual(unread._tag, "LogUnavailable")
      assert.isUndefined(yield* direct.load(a))
    }).pipe(Effect.provide(all)),
  )

  it.live("a server killed under load loses nothing acknowledged and doubles nothing", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const writers = Array.from({ length: 64 }, (_, i) => `test.many.w${i}`)
      const acknowledged = new Map<number, string>()
      let over = false
      const seen: Array<Recorded> = []
      const follower = yield* Effect.forkChild(
        Stream.runForEachArray(log.follow("", 0), (page) => Effect.sync(() => seen.push(...page))),
      )
      const load = yield* Effect.forkChild(
        Effect.forEach(
          writers,
          Effect.fnUntraced(function* (to) {
            for (let i = 0; !over; i++) {
              acknowledged.set(yield* writeOnce(to, `${to}-${i}`), `${to}-${i}`)
            }
          }),
          { concurrency: "unbounded", discard: true },
        ),
      )
      const pairs = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 8 }, (_, i) => [`pair.left.p${i}`, `pair.right.p${i}`] as const),
          Effect.fnUntraced(function* (pair) {
            for (let i = 0; !over; i++) yield* writePair(pair, `${pair[0]}-${i}`)
          }),
          { concurrency: "unbounded", discard: true },
        ),
      )
      for (let kills = 0; kills < 3; kills++) {
        const before = acknowledged.size
        yield* until(Effect.sync(() => acknowledged.size > before + 200))
        yield* kill
      }
      const before = acknowledged.size
      yield* until(Effect.sync(() => acknowledged.size > before + 200))
      over = true
      yield* Fiber.join(load)
      yield* Fiber.join(pairs)

      const left = (yield* collect(log.read("pair.left"))).map(textOf)
      const right = (yield* collect(log.read("pair.right"))).map(textOf)
      assert.strictEqual(new Set(left).size, left.length)
      assert.isAbove(left.length, 0)
      assert.deepEqual(right, left)

      const stored = yield* collect(log.read(""))
      const texts = new Map(stored.map((commit) => [commit.position, textOf(commit)]))
      assert.deepEqual(
        new Map([...acknowledged].filter(([at, text]) => texts.get(at) !== text)),
        new Map(),
      )
      for (const to of writers) {
        const own = stored.filter((commit) => commit.stream === to).map(textOf)
        assert.deepEqual(
          own,
          own.map((_, i) => `${to}-${i}`),
        )
      }
      yield* until(Effect.sync(() => seen.length >= stored.length))
      assert.deepEqual(places(seen), places(stored))
      yield* Fiber.interrupt(follower)
    }).pipe(Effect.provide(all)),
  )

  it.live("a read whose server is killed in the middle goes on without a gap or a double", () =>
    Effect.gen(function* () {
      const log = yield* Log
      yield* Effect.forEach(
        Array.from({ length: 6_000 }, (_, i) => `test.many.s${i}`),
        (to) => Effect.flatMap(first(to), (append) => log.append([append])),
        { concurrency: 250, discard: true },
      )
      for (const read of [log.read(""), log.lasts("")]) {
        const seen: Array<Recorded> = []
        let killed = false
        yield* Stream.runForEachArray(read, (page) => {
          seen.push(...page)
          if (killed || seen.length < 2_000) return Effect.void
          killed = true
          return Effect.andThen(kill, Effect.sleep(50))
        })
        assert.isTrue(killed)
        assert.deepEqual(
          places(seen),
          Array.from({ length: 6_000 }, (_, i) => i + 1),
        )
      }
    }).pipe(Effect.provide(all)),
  )

  it.live("readers that end, stop early or are interrupted leave no consumer behind", () =>
    Effect.gen(function* () {
      const log = yield* Log
      for (const i of [1, 2, 3]) yield* write(a, `${i}`)
      yield* collect(log.read(""))
      yield* collect(log.lasts(""))
      yield* collect(Stream.take(log.read(""), 1))
      const followers = yield* Effect.forEach([1, 2, 3, 4], () =>
        Effect.forkChild(Stream.runDrain(log.follow("", 0))),
      )
      yield* until(Effect.map(consumers, (count) => count === 4))
      yield* Fiber.interruptAll(followers)
      assert.strictEqual(yield* consumers, 0)
      const starting = yield* Effect.forkChild(Stream.runDrain(log.follow("", 0)))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(starting)
      assert.strictEqual(yield* consumers, 0)
    }).pipe(Effect.provide(all)),
  )

  it.live("a slow reader holds the server back, and misses nothing", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const large = "x".repeat(15_000)
      yield* Effect.forEach(
        Array.from({ length: 3_000 }, (_, i) => `test.many.s${i}`),
        (to) => Effect.flatMap(first(to, large), (append) => log.append([append])),
        { concurrency: 250, discard: true },
      )
      const { connection } = yield* NatsConnection
      const received = () => connection.stats().inBytes
      const before = received()
      let most = 0
      let taken = 0
      yield* Stream.runForEachArray(
        log.read(""),
        Effect.fnUntraced(function* (page) {
          taken += page.length
          if (most > 0) return
          // Waits until no more bytes arrive, although the reader takes nothing.
          let last = 0
          yield* until(
            Effect.sync(() => {
              const more = received() > last
              last = received()
              return !more
            }).pipe(Effect.delay(200)),
          )
          most = received() - before
        }),
      )
      assert.strictEqual(taken, 3_000)
      // The log has 135 MB; the limit allows two requests of 8 MiB and the consumed commits.
      assert.isBelow(most, 48 * 1024 * 1024)
    }).pipe(Effect.provide(all)),
  )

  it.live("a reader whose consumer gives signs of life and nothing else opens another", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const { jsm } = yield* NatsConnection
      yield* write(a, "before")
      const seen: Array<string | undefined> = []
      yield* Effect.forkScoped(
        Stream.runForEach(log.follow("", 0), (one) => Effect.sync(() => seen.push(textOf(one)))),
      )
      yield* until(Effect.sync(() => seen.length === 1))
      // Like a consumer on a server whose copy is unreadable: it responds but delivers no messages.
      const pause = async () => {
        const paused = new Date(Date.now() + 3_600_000)
        for await (const { name } of jsm.consumers.list(stream)) {
          await jsm.consumers.pause(stream, name, paused)
        }
      }
      yield* Effect.promise(pause)
      yield* write(a, "after")
      yield* until(Effect.sync(() => seen.length === 2))
      assert.deepEqual(seen, ["before", "after"])
      assert.strictEqual(yield* consumers, 1)
    }).pipe(Effect.scoped, Effect.provide(all)),
  )

  it.live("a stream that is there with other options is refused", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      yield* Effect.promise(() => jsm.streams.add({ name: "OTHER", subjects: ["other.>"] }))
      const exit = yield* Effect.exit(
        Effect.provide(Log, Layer.fresh(logJetStream({ stream: "OTHER", head: "other" }))),
      )
      assert.isTrue(Exit.isFailure(exit))
      assert.match(JSON.stringify(exit), /StreamMismatch/)
      assert.match(JSON.stringify(exit), /deny_delete/)
    }).pipe(Effect.provide(all)),
  )

  it.live("after a conflict the stream is read from the leader, once", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const { connection } = yield* NatsConnection
      const requests: Array<string> = []
      const spy = connection.subscribe(`$JS.API.STREAM.MSG.GET.${stream}`, {
        callback: (_, { data }) => {
          requests.push(new TextDecoder().decode(data))
        },
      })
      yield* write(a, "there")
      yield* log.load(a)
      assert.deepEqual(requests, [])
      yield* Effect.flip(log.append([yield* first(a)]))
      yield* log.load(a)
      yield* log.load(a)
      yield* until(Effect.sync(() => requests.length > 0))
      assert.deepEqual(requests, [`{"last_by_subj":"commit.${a}"}`])
      spy.unsubscribe()
    }).pipe(Effect.provide(all)),
  )
})
