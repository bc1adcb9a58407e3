/** Contract of every Commands adapter: in process, or over the bus. */
import { assert, it } from "@effect/vitest"
import { Effect, type Layer, Stream, Struct } from "effect"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { Log, type Origin, parseStream } from "#events/log.ts"
import { Close, CloseAt, ClosePlanned, Count, Counter, CounterFull } from "../world/counter.ts"

const at = "2026-11-20T12:00:00.000Z"

export const origin = (command_id: string): Origin => ({
  command_id,
  actor: "alice – ünïcode",
  at,
  request_id: "r1",
  correlation_id: "k1",
  cause: "7",
})

export const count = (id: string, by: number) => address(Counter, id, Count.make({ by }))

/** The total of each counter in the log, by id. */
export const totals = Effect.gen(function* () {
  const log = yield* Log
  const lasts = yield* Stream.runCollect(log.lasts("test.counter"))
  return Object.fromEntries(
    lasts.map(({ stream, commit }) => [
      parseStream(stream).id,
      (commit.snapshot.context as { total: number }).total,
    ]),
  )
})

/** Concurrent senders that compete for a few aggregates. */
const senders = 64
const aggregates = ["a", "b", "c"] as const

/** Runs the suite; `make` returns a layer with an empty log. */
export const commandsContract = <E>(make: () => Layer.Layer<Commands | Log, E>) => {
  const test = (name: string, body: Effect.Effect<void, unknown, Commands | Log>) =>
    it.live(name, () => Effect.provide(body, make()))

  test(
    "answers the position that shows what a command did, and says who asked",
    Effect.gen(function* () {
      const { send } = yield* Commands
      const log = yield* Log
      const position = yield* send(origin("one"), count("x", 2))
      assert.equal(position, yield* log.head("test.counter.x"))
      assert.isAbove(yield* send(origin("two"), count("x", 3)), position)
      const request = Struct.omit(origin("one"), ["command_id"])
      const [first] = yield* Stream.runCollect(log.read("test.counter.x"))
      assert.deepInclude(first?.commit, request)
      assert.deepEqual(first?.commit.commands, ["one"])
    }),
  )

  test(
    "carries each field of a command as it is",
    Effect.gen(function* () {
      const { send } = yield* Commands
      yield* send(origin("a"), address(Counter, "x", CloseAt.make({ due: at })))
      const last = yield* (yield* Log).load("test.counter.x")
      assert.deepEqual(last?.commit.events, [ClosePlanned.make({ due: at })])
    }),
  )

  test(
    "answers a rejection as what its decider rejected with, and writes nothing",
    Effect.gen(function* () {
      const { send } = yield* Commands
      yield* send(origin("a"), count("x", 999_999))
      const head = yield* (yield* Log).head("")
      const refused = yield* Effect.flip(send(origin("b"), count("x", 2)))
      assert(refused instanceof CounterFull)
      assert.deepInclude(refused, { code: "counter.full", total: 999_999 })
      assert.equal(yield* (yield* Log).head(""), head)
    }),
  )

  test(
    "does all of several commands, or none",
    Effect.gen(function* () {
      const { send } = yield* Commands
      yield* send(origin("a"), count("x", 1), count("y", 2))
      const refused = yield* Effect.flip(send(origin("b"), count("x", 1), count("y", 1_000_000)))
      assert(refused instanceof CounterFull)
      assert.deepEqual(yield* totals, { x: 1, y: 2 })
    }),
  )

  test(
    "does a command once under its id, and answers it alike",
    Effect.gen(function* () {
      const { send } = yield* Commands
      const first = yield* send(origin("same"), count("x", 1))
      assert.equal(yield* send(origin("same"), count("x", 1)), first)
      yield* send(origin("same"), count("x", 1))
      assert.deepEqual(yield* totals, { x: 1 })
    }),
  )

  test(
    "does nothing under an id that was another command's, by their fingerprints",
    Effect.gen(function* () {
      const { send } = yield* Commands
      const originOf = (id: string, fingerprint: string) => ({ ...origin(id), fingerprint })
      yield* send(origin("before"), count("x", 1))
      const first = yield* send(originOf("same", "a"), count("x", 1), count("y", 1))
      const refused = yield* Effect.flip(send(originOf("same", "b"), count("x", 5), count("z", 1)))
      assert(refused instanceof Unavailable)
      assert.isTrue(refused.is_reused)
      yield* send(origin("later"), count("x", 1))
      // Commands from before and after have no fingerprint: they count as done for any request.
      yield* send(originOf("before", "a"), count("x", 1))
      yield* send(originOf("later", "a"), count("x", 1))
      yield* send(origin("same"), count("x", 1))
      assert.isAtLeast(yield* send(originOf("same", "a"), count("x", 1), count("y", 1)), first)
      assert.instanceOf(yield* Effect.flip(send(originOf("same", "b"), count("y", 1))), Unavailable)
      assert.deepEqual(yield* totals, { x: 3, y: 1 })
    }),
  )

  test(
    "does a command that may happen only once for one of many senders",
    Effect.gen(function* () {
      const { send } = yield* Commands
      const results = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, i) => i),
        (i) => Effect.result(send(origin(`close-${i}`), address(Counter, "x", Close.make({})))),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(
        results.filter(({ _tag }) => _tag === "Success"),
        1,
      )
    }),
  )

  test(
    `adds up what ${senders} senders count at the same moment`,
    Effect.gen(function* () {
      const { send } = yield* Commands
      yield* Effect.forEach(
        Array.from({ length: senders }, (_, i) => i),
        (i) => send(origin(`c${i}`), count(aggregates[i % aggregates.length] ?? "a", i)),
        { concurrency: "unbounded", discard: true },
      )
      const sum = (rest: number) =>
        Array.from({ length: senders }, (_, i) => (i % aggregates.length === rest ? i : 0)).reduce(
          (a, b) => a + b,
        )
      assert.deepEqual(yield* totals, { a: sum(0), b: sum(1), c: sum(2) })
    }),
  )
}
