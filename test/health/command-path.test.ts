import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Commands, Unavailable } from "#actors/commands.ts"
import { CommandPath, commandPath } from "#actors/health/command-path.ts"
import { Log } from "#events/log.ts"

/**
 * Commands that are committed, rejected or never complete, as the test chooses; all are counted.
 */
const world = Effect.gen(function* () {
  const state = { head: 10, sent: 0, does: "commit" as "commit" | "fail" | "hang" }
  const commands = Commands.of({
    send: () =>
      Effect.suspend(() => {
        state.sent++
        if (state.does === "hang") return Effect.never
        if (state.does === "fail") return Effect.fail(new Unavailable({ detail: "disk full" }))
        return Effect.succeed(++state.head)
      }),
  })
  // The command path only reads the log's head.
  const log = { head: () => Effect.sync(() => state.head) } as never
  const below = Layer.succeedContext(Context.make(Commands, commands).pipe(Context.add(Log, log)))
  const around = yield* Layer.build(Layer.provide(commandPath, below))
  return { state, ask: Context.get(around, CommandPath).check, ...Context.get(around, Commands) }
})

const command = { command_id: "c", actor: "user:a", at: "2026-01-01T00:00:00Z" }

describe("the command path", () => {
  it.effect("is probed once after minutes without a commit, despite many checks", () =>
    Effect.gen(function* () {
      const { state, ask } = yield* world
      for (let requests = 0; requests < 100; requests++) {
        assert.isUndefined((yield* ask).failing_ms)
        yield* TestClock.adjust("1 second")
      }
      assert.equal(state.sent, 1)
      yield* TestClock.adjust("5 minutes")
      yield* ask
      assert.equal(state.sent, 2)
    }),
  )

  it.effect("is not probed while this process or another one writes", () =>
    Effect.gen(function* () {
      const { state, ask, send } = yield* world
      yield* send(command)
      for (let minutes = 0; minutes < 60; minutes++) {
        yield* TestClock.adjust("1 minute")
        if (minutes < 30) yield* send(command)
        // Another process writes.
        else state.head++
        state.sent = 0
        yield* ask
        // The first check of the log's head has nothing to compare it with.
        if (minutes > 36) assert.equal(state.sent, 0)
      }
    }),
  )

  it.effect("fails from the first failure until the next commit", () =>
    Effect.gen(function* () {
      const { state, ask, send } = yield* world
      yield* send(command)
      state.does = "fail"
      yield* TestClock.adjust("1 second")
      yield* Effect.ignore(send(command))
      state.sent = 0
      for (let seconds = 0; seconds < 60; seconds++) {
        yield* TestClock.adjust("1 second")
        assert.equal((yield* ask).failing_ms, 1_000)
      }
      assert.equal((yield* ask).detail, "disk full")
      assert.isAtMost(state.sent, 12, "a log that fails is probed every 5 s at most")
      state.does = "commit"
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined((yield* ask).failing_ms)
    }),
  )

  it.effect("fails while a command gets no response, with only one pending probe", () =>
    Effect.gen(function* () {
      const { state, ask, send } = yield* world
      yield* send(command)
      state.does = "hang"
      yield* TestClock.adjust("1 second")
      yield* Effect.forkScoped(send(command))
      yield* TestClock.adjust("1 second")
      assert.isUndefined((yield* ask).failing_ms, "one second is no failure")
      yield* TestClock.adjust("20 seconds")
      for (let requests = 0; requests < 20; requests++) {
        yield* Effect.forkScoped(ask)
        yield* TestClock.adjust("1 second")
      }
      assert.equal((yield* ask).failing_ms, 1_000)
      assert.isUndefined((yield* ask).detail)
      assert.equal(state.sent, 3, "two commands and a probe")
    }).pipe(Effect.scoped),
  )
})
