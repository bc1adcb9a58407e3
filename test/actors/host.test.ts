import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Layer, Result, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import {
  commands_remembered_max,
  Log,
  LogUnavailable,
  type Origin,
  OutcomeUnknown,
  parseStream,
  VersionConflict,
} from "#events/log.ts"
import { underTrace } from "#events/trace.ts"
import { logMemory } from "#journal"
import { collecting } from "../observability/collecting.ts"
import { Close, Count, Counter, CounterFull } from "../world/counter.ts"

const at = "2026-11-20T12:00:00.000Z"
const origin = (command_id: string): Origin => ({ command_id, actor: "test", at })
const count = (id: string, by: number) => address(Counter, id, Count.make({ by }))

const totals = Effect.gen(function* () {
  const log = yield* Log
  const lasts = yield* Stream.runCollect(log.lasts("test.counter"))
  return Object.fromEntries(
    lasts.map(({ stream, commit }) => [
      parseStream(stream).id,
      (commit.snapshot.context as { total: number }).total,
    ]),
  )
})

/** Two hosts over one log, like two processes. */
const hosts = Effect.gen(function* () {
  const one = yield* Effect.provide(Commands, Layer.fresh(host))
  const other = yield* Effect.provide(Commands, Layer.fresh(host))
  return [one, other] as const
})

/** A log whose next appends fail in a given way, before or after the write. */
const faulty = (faults: Array<"conflict" | "before" | "after" | "down">) =>
  Layer.effect(
    Log,
    Effect.map(Log, (log) =>
      Log.of({
        ...log,
        append: (commits) => {
          const fault = faults.shift()
          const detail = "injected"
          if (fault === "conflict") return Effect.fail(new VersionConflict({ detail }))
          if (fault === "before") return Effect.fail(new OutcomeUnknown({ detail }))
          if (fault === "down") return Effect.fail(new LogUnavailable({ detail }))
          if (fault === undefined) return log.append(commits)
          return Effect.andThen(log.append(commits), Effect.fail(new OutcomeUnknown({ detail })))
        },
      }),
    ),
  ).pipe(Layer.provide(logMemory))

/** A log whose reads block until this many are pending: sequential readers would wait forever. */
const gathering = (readers: number) =>
  Layer.effect(
    Log,
    Effect.gen(function* () {
      const log = yield* Log
      const all = yield* Latch.make(false)
      let waiting = 0
      return Log.of({
        ...log,
        tip: (stream) =>
          Effect.suspend(() => {
            const come = ++waiting === readers ? all.open : Effect.void
            return come.pipe(Effect.andThen(all.await), Effect.andThen(log.tip(stream)))
          }),
      })
    }),
  ).pipe(Layer.provide(logMemory))

describe("a host", () => {
  it.effect("executes a command and returns the position that includes it", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      assert.equal(yield* commands.send(origin("a"), count("x", 2)), 1)
      assert.equal(yield* commands.send(origin("b"), count("x", 3)), 2)
      assert.deepEqual(yield* totals, { x: 5 })
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("loads the aggregates of one batch concurrently", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      assert.equal(yield* commands.send(origin("a"), count("x", 1), count("y", 2)), 2)
      assert.deepEqual(yield* totals, { x: 1, y: 2 })
    }).pipe(Effect.provide(host), Effect.provide(gathering(2))),
  )

  it.effect("returns a rejection and writes nothing", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      yield* commands.send(origin("a"), count("x", 999_999))
      const refused = yield* Effect.flip(commands.send(origin("b"), count("x", 2)))
      assert(refused instanceof CounterFull)
      assert.equal(refused.total, 999_999)
      assert.equal(yield* (yield* Log).head(""), 1)
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("writes nothing for a command that changes nothing", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      yield* commands.send(origin("a"), count("x", 1))
      assert.equal(yield* commands.send(origin("b"), count("x", 0)), 1)
      assert.equal(yield* (yield* Log).head(""), 1)
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("executes a repeated command once, also after later commits", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const log = yield* Log
      yield* commands.send(origin("first"), count("x", 1))
      for (let i = 0; i < commands_remembered_max - 1; i++) {
        yield* commands.send(origin(`later-${i}`), count("x", 1))
        yield* commands.send(origin("first"), count("x", 1))
      }
      assert.deepEqual(yield* totals, { x: commands_remembered_max })
      assert.equal((yield* log.load("test.counter.x"))?.commit.commands.length, 64)
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("executes a command once when two hosts get it", () =>
    Effect.gen(function* () {
      for (const commands of yield* hosts) yield* commands.send(origin("same"), count("x", 1))
      assert.deepEqual(yield* totals, { x: 1 })
    }).pipe(Effect.provide(logMemory)),
  )

  it.effect("detects from the log that another host executed a command id", () =>
    Effect.gen(function* () {
      const [one, other] = yield* hosts
      yield* one.send({ ...origin("same"), fingerprint: "a" }, count("x", 1))
      const request = { ...origin("same"), fingerprint: "b" }
      const refused = yield* Effect.flip(other.send(request, count("x", 5)))
      assert.include(refused, { _tag: "Unavailable", is_reused: true })
      assert.deepEqual(yield* totals, { x: 1 })
    }).pipe(Effect.provide(logMemory)),
  )

  it.effect("changes several aggregates atomically", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      yield* commands.send(origin("a"), count("x", 1), count("y", 2))
      assert.deepEqual(yield* totals, { x: 1, y: 2 })
      const refused = yield* Effect.flip(
        commands.send(origin("b"), count("x", 1), count("y", 1_000_000)),
      )
      assert(refused instanceof CounterFull)
      assert.deepEqual(yield* totals, { x: 1, y: 2 })
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("executes a batch once, also when only one aggregate changed", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      for (let i = 0; i < 2; i++) yield* commands.send(origin("a"), count("x", 1), count("y", 0))
      assert.deepEqual(yield* totals, { x: 1 })
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("uses cached aggregates and loads others", () =>
    Effect.gen(function* () {
      const [one, other] = yield* hosts
      yield* one.send(origin("a"), count("x", 1))
      yield* other.send(origin("b"), count("y", 2))
      // A repeated batch returns the position that includes all of it.
      for (let i = 0; i < 2; i++) {
        assert.equal(yield* one.send(origin("c"), count("x", 10), count("y", 20)), 4)
      }
      assert.deepEqual(yield* totals, { x: 11, y: 22 })
    }).pipe(Effect.provide(logMemory)),
  )

  it.effect("loads an aggregate once", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const loaded: Array<string> = []
      const tip = (stream: string) => {
        loaded.push(stream)
        return log.tip(stream)
      }
      const watched = Layer.provide(Layer.fresh(host), Layer.succeed(Log, { ...log, tip }))
      const commands = yield* Effect.provide(Commands, watched)
      yield* commands.send(origin("a"), count("x", 0))
      yield* commands.send(origin("b"), count("x", 1))
      yield* commands.send(origin("c"), count("x", 1))
      assert.deepEqual(loaded, ["test.counter.x"])
    }).pipe(Effect.provide(logMemory)),
  )

  it.effect("records one span per command, and its id in the commit", () =>
    Effect.gen(function* () {
      const { spans, tracer } = collecting()
      const commands = yield* Commands
      const log = yield* Log
      const outside = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
      yield* commands
        .send(origin("a"), count("x", 1))
        .pipe(underTrace(outside), Effect.withTracer(tracer))
      assert.deepEqual(
        spans.map(({ name }) => name),
        ["command"],
      )
      const span = spans[0] ?? assert.fail("no span")
      assert.strictEqual(span.traceId, "4bf92f3577b34da6a3ce929d0e0e4736")
      const written = yield* log.load("test.counter.x")
      assert.strictEqual(written?.commit.trace, `00-${span.traceId}-${span.spanId}-01`)
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("writes no trace if tracing is off, even if the sender has one", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
      yield* Effect.withSpan(commands.send({ ...origin("a"), trace }, count("x", 1)), "unseen")
      const written = yield* (yield* Log).load("test.counter.x")
      assert.isFalse(Object.hasOwn(written?.commit ?? {}, "trace"))
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.live("decides again after a conflict with another host", () =>
    Effect.gen(function* () {
      const [one, other] = yield* hosts
      for (let i = 0; i < 10; i++) {
        yield* one.send(origin(`one-${i}`), count("x", 1))
        yield* other.send(origin(`other-${i}`), count("x", 1))
      }
      assert.deepEqual(yield* totals, { x: 20 })
    }).pipe(Effect.provide(logMemory)),
  )

  it.live("rejects by the state in the log, not by its cache", () =>
    Effect.gen(function* () {
      const [one, other] = yield* hosts
      yield* one.send(origin("a"), count("x", 999_999))
      yield* other.send(origin("b"), count("x", -999_999))
      assert.equal(yield* one.send(origin("c"), count("x", 5)), 3)
      yield* other.send(origin("d"), address(Counter, "x", Close.make({})))
      const refused = yield* Effect.flip(one.send(origin("e"), count("x", 1)))
      assert(refused instanceof CounterFull)
      assert.equal(refused.total, 5)
    }).pipe(Effect.provide(logMemory)),
  )

  it.live("counts correctly with many concurrent senders", () =>
    Effect.gen(function* () {
      const both = yield* hosts
      yield* Effect.forEach(
        Array.from({ length: 60 }, (_, i) => i),
        (i) => (both[i % 2] ?? both[0]).send(origin(`c-${i}`), count("x", 1), count("y", 1)),
        { concurrency: 6 },
      )
      assert.deepEqual(yield* totals, { x: 60, y: 60 })
    }).pipe(Effect.provide(logMemory)),
  )

  for (const fault of ["before", "after"] as const) {
    it.live(`does a command once when the answer is lost ${fault} the write`, () =>
      Effect.gen(function* () {
        const commands = yield* Commands
        yield* commands.send(origin("a"), count("x", 1))
        assert.deepEqual(yield* totals, { x: 1 })
      }).pipe(Effect.provide(host), Effect.provide(faulty([fault]))),
    )
  }

  it.live("fails with Unavailable after ten conflicts", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const failed = yield* Effect.flip(commands.send(origin("a"), count("x", 1)))
      assert(!(failed instanceof CounterFull))
      assert.equal(failed._tag, "Unavailable")
      assert.equal(yield* commands.send(origin("a"), count("x", 1)), 1)
    }).pipe(
      Effect.provide(host),
      Effect.provide(faulty(Array.from({ length: 10 }, () => "conflict"))),
    ),
  )

  it.effect("does not retry when the log is unavailable: nothing was written", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const sent = yield* Effect.result(commands.send(origin("a"), count("x", 1)))
      assert(Result.isFailure(sent))
      assert.deepEqual(yield* totals, {})
    }).pipe(Effect.provide(host), Effect.provide(faulty(["down"]))),
  )

  it.effect("chains the commits of an aggregate by their hashes", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const log = yield* Log
      for (const id of ["a", "b", "c"]) yield* commands.send(origin(id), count("x", 1))
      const commits = yield* Stream.runCollect(log.read("test.counter.x"))
      const before = [log.hashOf("test.counter.x"), ...commits.map(({ hash }) => hash)]
      assert.deepEqual(
        commits.map(({ commit }) => commit.prev),
        before.slice(0, 3),
      )
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )

  it.effect("folds the history if a snapshot is too old to read", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      yield* commands.send(origin("a"), count("x", 2))
      yield* commands.send(origin("b"), count("x", 3))
      const Newer = { ...Counter, restore: () => undefined }
      const [fresh] = yield* hosts
      yield* fresh.send(origin("c"), address(Newer, "x", Count.make({ by: 4 })))
      assert.deepEqual(yield* totals, { x: 9 })
    }).pipe(Effect.provide(host), Effect.provide(logMemory)),
  )
})
