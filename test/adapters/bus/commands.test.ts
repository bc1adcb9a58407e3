import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Schedule, Scope, Stream } from "effect"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { type RemoteOptions, remoteCommands, serveCommands } from "#adapters/bus/commands.ts"
import { connectBus, NatsServer } from "#bus"
import { Log } from "#events/log.ts"
import { logJetStream } from "#journal"
import { commandsContract, count, origin, totals } from "../../contract/commands.ts"
import { Count, Counter, CounterFull } from "../../world/counter.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"
import { proxy } from "../../world/proxy.ts"

/** The logged lines. */
const logged: Array<string> = []
const logging = Logger.layer([
  Logger.map(Logger.formatLogFmt, (line) => {
    logged.push(line)
  }),
])
const bus = Layer.provideMerge(logJetStream({ stream: "LOG" }), nats).pipe(
  Layer.provideMerge(logging),
)

/** A separate connection, as another process would have. */
const connection = Effect.gen(function* () {
  const { servers, core } = yield* NatsServer
  return (yield* connectBus({ servers, login: core })).connection
})

type Carry = Commands["Service"]["send"]

/**
 * Another process that hosts counters until the scope closes; `through` may intercept its commands.
 */
const hosting = Effect.fnUntraced(function* (through: (send: Carry) => Carry = (send) => send) {
  const { send } = yield* Effect.provide(Commands, yield* Layer.build(Layer.fresh(host)))
  yield* Effect.provideService(
    serveCommands(yield* connection, "test", [Counter]),
    Commands,
    Commands.of({ send: through(send) }),
  )
})

/** A sender of commands to these hosts. */
const sender = Effect.fnUntraced(function* (options: RemoteOptions = {}) {
  const layer = remoteCommands(yield* connection, options)
  return yield* Effect.provide(Commands, yield* Layer.build(layer))
})

/** Hosts in one queue group, and a sender of commands to them. */
const remote = (hosts: number) =>
  Layer.effect(
    Commands,
    Effect.gen(function* () {
      for (let i = 0; i < hosts; i++) yield* hosting()
      return yield* sender()
    }),
  ).pipe(Layer.provideMerge(bus))

const until = (condition: () => boolean) =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.fail("not yet"))).pipe(
    Effect.retry({ schedule: Schedule.spaced(10), times: 1000 }),
  )

const live = (
  name: string,
  body: Effect.Effect<void, unknown, Layer.Success<typeof bus> | Scope.Scope>,
) => it.live(name, () => body.pipe(Effect.scoped, Effect.provide(Layer.fresh(bus))))

for (const hosts of [1, 2]) {
  describeWithServer(`commands over the bus, with ${hosts} of their hosts`, () => {
    commandsContract(() => Layer.fresh(remote(hosts)))
  })
}

describeWithServer("commands over the bus, when something is wrong", () => {
  live(
    "are Unavailable within seconds when there is no host",
    Effect.gen(function* () {
      const { send } = yield* sender()
      const begun = performance.now()
      const failed = yield* Effect.flip(send(origin("a"), count("x", 1)))
      assert(failed instanceof Unavailable)
      assert.match(failed.detail, /^No host responded/)
      assert.isBelow(performance.now() - begun, 5000)
    }),
  )

  live(
    "are Unavailable in bounded time when their host says nothing",
    Effect.gen(function* () {
      yield* hosting(() => () => Effect.never)
      const { send } = yield* sender({ response_ms: 60_000, total_ms: 200 })
      const failed = yield* Effect.flip(send(origin("a"), count("x", 1)))
      assert.deepEqual(failed, new Unavailable({ detail: "No host responded in time." }))
    }),
  )

  live(
    "reach a host that begins a moment later",
    Effect.gen(function* () {
      const { send } = yield* sender()
      const sending = yield* Effect.forkChild(send(origin("a"), count("x", 1)))
      yield* Effect.sleep(150)
      yield* hosting()
      assert.equal(yield* Fiber.join(sending), 1)
    }),
  )

  live(
    "are Unavailable for an aggregate that the host does not know",
    Effect.gen(function* () {
      yield* hosting()
      const { send } = yield* sender()
      const other = { ...Counter, name: "test.other" }
      const failed = yield* Effect.flip(
        send(origin("a"), address(other, "x", Count.make({ by: 1 }))),
      )
      assert(failed instanceof Unavailable)
      assert.include(failed.detail, "test.other")
    }),
  )

  live(
    "are Unavailable with the host's own reason when it cannot carry them out",
    Effect.gen(function* () {
      yield* hosting(() => () => Effect.fail(new Unavailable({ detail: "The log is down." })))
      const { send } = yield* sender()
      const failed = yield* Effect.flip(send(origin("a"), count("x", 1)))
      assert.deepEqual(failed, new Unavailable({ detail: "The log is down." }))
    }),
  )

  live(
    "are done once when the host dies after it wrote and before it answered",
    Effect.gen(function* () {
      const wrote = yield* Deferred.make<void>()
      const dying = yield* Scope.make()
      // Writes, and then never responds.
      const mute = hosting(
        (send) =>
          (...args) =>
            Effect.andThen(
              send(...args),
              Effect.andThen(Deferred.done(wrote, Exit.void), Effect.never),
            ),
      )
      yield* Scope.provide(mute, dying)
      const { send } = yield* sender({ response_ms: 500 })
      const sending = yield* Effect.forkChild(send(origin("a"), count("x", 1)))
      yield* Deferred.await(wrote)
      yield* hosting()
      yield* Effect.forkScoped(Scope.close(dying, Exit.void))
      const position = yield* Fiber.join(sending)
      assert.equal(position, yield* (yield* Log).head("test.counter.x"))
      assert.deepEqual(yield* totals, { x: 1 })
    }),
  )

  live(
    "are done once when the answer is lost with the connection",
    Effect.gen(function* () {
      yield* hosting()
      const { servers, core } = yield* NatsServer
      const between = yield* proxy(servers[0] ?? "")
      const { connection } = yield* connectBus({ servers: [between.url], login: core })
      const { send } = yield* Effect.provide(
        Commands,
        yield* Layer.build(remoteCommands(connection)),
      )
      yield* send(origin("warm"), count("x", 1))
      const log = yield* Log
      for (let i = 1; i <= 5; i++) {
        between.swallow()
        const sending = yield* Effect.forkChild(send(origin(`lost-${i}`), count("x", 1)))
        yield* Effect.flatMap(log.load("test.counter.x"), (last) =>
          last?.commit.commands.includes(`lost-${i}`) ? Effect.void : Effect.fail("not yet"),
        ).pipe(Effect.retry({ schedule: Schedule.spaced(10), times: 1000 }))
        between.cut()
        yield* Fiber.join(sending)
      }
      assert.deepEqual(yield* totals, { x: 6 })
    }),
  )

  live(
    "are answered by a host that ends while they are under way",
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const ending = yield* Scope.make()
      const slow = hosting(
        (send) =>
          (...args) =>
            Deferred.done(started, Exit.void).pipe(
              Effect.andThen(Deferred.await(go)),
              Effect.andThen(send(...args)),
            ),
      )
      yield* Scope.provide(slow, ending)
      const { send } = yield* sender()
      const sending = yield* Effect.forkChild(send(origin("a"), count("x", 1)))
      yield* Deferred.await(started)
      const closing = yield* Effect.forkChild(Scope.close(ending, Exit.void))
      yield* Effect.sleep(50)
      yield* Deferred.done(go, Exit.void)
      assert.equal(yield* Fiber.join(sending), 1)
      yield* Fiber.join(closing)
    }),
  )

  live(
    "go on at another host when theirs ends before they are done",
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const ending = yield* Scope.make()
      const stuck = hosting(
        () => () => Effect.andThen(Deferred.done(started, Exit.void), Effect.never),
      )
      yield* Scope.provide(stuck, ending)
      // Longer than any test: only a response triggers a retry.
      const { send } = yield* sender({ response_ms: 600_000, total_ms: 600_000 })
      const sending = yield* Effect.forkChild(send(origin("a"), count("x", 1)))
      yield* Deferred.await(started)
      yield* hosting()
      yield* Scope.close(ending, Exit.void)
      assert.equal(yield* Fiber.join(sending), 1)
    }),
  )

  live(
    "go to a host that has room when one has none, and are all done",
    Effect.gen(function* () {
      const senders = 300
      const go = yield* Deferred.make<void>()
      let waiting = 0
      yield* hosting((send) => (...args) => {
        waiting++
        return Effect.andThen(Deferred.await(go), send(...args))
      })
      const { send } = yield* sender()
      const sending = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: senders }, (_, i) => i),
          (i) => send(origin(`c${i}`), count(`x${i % 30}`, 1)),
          { concurrency: "unbounded", discard: true },
        ),
      )
      yield* until(() => waiting >= 256)
      assert.equal(waiting, 256)
      yield* Deferred.done(go, Exit.void)
      yield* Fiber.join(sending)
      assert.equal(
        Object.values(yield* totals).reduce((a, b) => a + b, 0),
        senders,
      )
    }),
  )

  live(
    "go to one of two hosts each, and both get some",
    Effect.gen(function* () {
      const seen = [0, 0]
      for (const host of [0, 1]) {
        yield* hosting((send) => (...args) => {
          seen[host] = (seen[host] ?? 0) + 1
          return send(...args)
        })
      }
      const { send } = yield* sender()
      for (let i = 0; i < 60; i++) yield* send(origin(`c${i}`), count("x", 1))
      assert.equal((seen[0] ?? 0) + (seen[1] ?? 0), 60)
      assert.isAbove(Math.min(...seen), 0)
    }),
  )

  live(
    "are answered and logged when they are malformed, and the next one is done",
    Effect.gen(function* () {
      yield* hosting()
      const raw = yield* connection
      const wrong = { name: "test.counter", id: "x", command: { type: "Count", by: "secret" } }
      const right = { ...wrong, command: { type: "Count", by: 1 } }
      logged.length = 0
      for (const text of [
        "",
        "{",
        "null",
        "{}",
        JSON.stringify({ origin: origin("a"), commands: 7 }),
        JSON.stringify({ origin: origin("a"), commands: [wrong] }),
        JSON.stringify({ commands: [right] }),
        JSON.stringify({ origin: { ...origin("a"), at: "secret" }, commands: [right] }),
        JSON.stringify({
          origin: { ...origin("a"), at: "2026-13-40T12:00:00Z" },
          commands: [right],
        }),
        JSON.stringify({ origin: { ...origin("a"), actor: { secret: 1 } }, commands: [right] }),
        JSON.stringify({ origin: origin("secret".repeat(200)), commands: [right] }),
      ]) {
        const sendRequest = () => raw.request("command.test.counter.x", text, { timeout: 5000 })
        const answer = yield* Effect.promise(sendRequest)
        assert.deepEqual(answer.json(), { unavailable: "The host failed; see its log." })
      }
      assert.lengthOf(
        logged.filter((line) => line.includes("A command failed.")),
        11,
      )
      assert.notInclude(logged.join(), "secret")
      const { send } = yield* sender()
      assert.equal(yield* send(origin("a"), count("x", 1)), 1)
    }),
  )

  live(
    "of one aggregate stay right while hosts come, go and lose their server",
    Effect.gen(function* () {
      const server = yield* NatsServer
      const { send } = yield* sender({ response_ms: 1000 })
      yield* hosting()
      const patient = { schedule: Schedule.spaced(50), times: 200 } as const
      const sending = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 200 }, (_, i) => i),
          (i) =>
            Effect.retry(send(origin(`c${i}`), count(`x${i % 4}`, 1)), {
              ...patient,
              while: (error) => !(error instanceof CounterFull),
            }),
          { concurrency: 8, discard: true },
        ),
      )
      for (let round = 0; round < 3; round++) {
        const scope = yield* Scope.make()
        yield* Scope.provide(hosting(), scope)
        yield* Effect.sleep(100)
        if (round === 1) {
          const pid = yield* server.pid
          if (pid !== undefined) process.kill(pid, "SIGKILL")
        }
        yield* Scope.close(scope, Exit.void)
      }
      yield* Fiber.join(sending)
      assert.deepEqual(yield* totals, { x0: 50, x1: 50, x2: 50, x3: 50 })
      const commits = yield* Stream.runCollect((yield* Log).read("test.counter"))
      assert.lengthOf(commits, 200)
    }),
  )
})
