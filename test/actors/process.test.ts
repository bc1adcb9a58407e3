import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Stream } from "effect"
import { TestClock } from "effect/testing"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Term } from "#actors/leases.ts"
import { keepRunning, type Process, runProcess } from "#actors/process.ts"
import { timer } from "#actors/timer.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { Close, CloseAt, Count, Counter } from "../world/counter.ts"

const send = Effect.fnUntraced(function* (
  id: string,
  command: Parameters<typeof Counter.decide>[1],
) {
  const commands = yield* Commands
  const command_id = crypto.randomUUID()
  const at = "1970-01-01T00:00:00.000Z"
  return yield* commands.send({ command_id, actor: "test", at }, address(Counter, id, command))
})

const stateOf = Effect.fnUntraced(function* (id: string) {
  const last = yield* (yield* Log).load(`test.counter.${id}`)
  return last?.commit.snapshot.value
})

/** Waits until the log gets no new commits, which means that the process has reacted. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 100; i++) yield* Effect.yieldNow
})

const closing = timer("test", [Counter])
const app = Layer.provideMerge(host, logMemory)
const at = (seconds: number) => new Date(seconds * 1000).toISOString()

describe("a process without a lease", () => {
  it.effect("restarts from the log after a defect", () =>
    Effect.gen(function* () {
      let starts = 0
      const seen: Array<number> = []
      const fragile: Process = {
        name: "test-fragile",
        part: "test.counter",
        from: "lasts",
        start: Effect.sync(() => {
          const is_broken = ++starts === 1
          return {
            fold: ({ position }) =>
              is_broken ? Effect.die("broken") : Effect.sync(() => void seen.push(position)),
            due: () => ({ now: [] }),
          }
        }),
      }
      yield* Effect.forkScoped(keepRunning(fragile))
      yield* send("x", Count.make({ by: 1 }))
      yield* settled
      assert.deepEqual(seen, [])
      yield* TestClock.adjust("1 seconds")
      yield* settled
      yield* send("x", Count.make({ by: 1 }))
      yield* settled
      assert.deepEqual(seen, [1, 2])
    }).pipe(Effect.provide([app, Logger.layer([])])),
  )
})

describe("a process with a permanent defect", () => {
  const broken: Process = {
    name: "test-broken",
    part: "test.counter",
    from: "lasts",
    start: Effect.sync(() => ({ fold: () => Effect.die("broken"), due: () => ({ now: [] }) })),
  }
  /** The log messages and the number of starts within an hour. */
  const hour = Effect.gen(function* () {
    let starts = 0
    const process: Process = {
      ...broken,
      start: Effect.andThen(
        Effect.sync(() => void starts++),
        broken.start,
      ),
    }
    const messages: Array<string> = []
    const heard = Logger.layer([Logger.make(({ message }) => messages.push(String(message)))])
    yield* Effect.forkScoped(Effect.provide(keepRunning(process), heard))
    yield* send("x", Count.make({ by: 1 }))
    for (let second = 0; second < 3600; second++) {
      yield* settled
      yield* TestClock.adjust("1 seconds")
    }
    return { messages, starts }
  })

  it.effect("logs the first defect, then fewer, with their count", () =>
    Effect.gen(function* () {
      const { messages } = yield* hour
      assert.include(messages[0], "test-broken failed and restarts.")
      assert.include(messages[1], "test-broken failed and restarts (2 times in a row).")
      assert.include(messages.at(-1), "(256 times in a row)")
      assert.equal(messages.length, 9)
    }).pipe(Effect.provide(app)),
  )

  it.effect("restarts soon, and every ten seconds later on", () =>
    Effect.gen(function* () {
      const { starts } = yield* hour
      assert.isAtLeast(starts, 360)
      assert.isAtMost(starts, 370)
    }).pipe(Effect.provide(app)),
  )
})

describe("the timer", () => {
  it.effect("sends a scheduled command when it is due, and not earlier", () =>
    Effect.gen(function* () {
      yield* Effect.forkScoped(runProcess(closing))
      yield* send("x", CloseAt.make({ due: at(100) }))
      yield* settled
      yield* TestClock.adjust("99 seconds")
      yield* settled
      assert.equal(yield* stateOf("x"), "open")
      yield* TestClock.adjust("1 seconds")
      yield* settled
      assert.equal(yield* stateOf("x"), "closed")
    }).pipe(Effect.provide(app)),
  )

  it.effect("sends commands at startup that were due while no process ran", () =>
    Effect.gen(function* () {
      yield* send("x", CloseAt.make({ due: at(10) }))
      yield* TestClock.adjust("60 seconds")
      yield* Effect.forkScoped(runProcess(closing))
      yield* settled
      assert.equal(yield* stateOf("x"), "closed")
    }).pipe(Effect.provide(app)),
  )

  it.effect("follows rescheduled and cancelled timers", () =>
    Effect.gen(function* () {
      yield* Effect.forkScoped(runProcess(closing))
      yield* send("moved", CloseAt.make({ due: at(10) }))
      yield* send("moved", CloseAt.make({ due: at(500) }))
      yield* send("dropped", CloseAt.make({ due: at(10) }))
      yield* send("dropped", Close.make({}))
      yield* settled
      yield* TestClock.adjust("60 seconds")
      yield* settled
      assert.equal(yield* stateOf("moved"), "open")
      assert.equal(yield* (yield* Log).head("test.counter.dropped"), 4)
    }).pipe(Effect.provide(app)),
  )

  it.effect("sends nothing after its lease has expired", () =>
    Effect.gen(function* () {
      let is_over = true
      const term = { isOver: Effect.sync(() => is_over) }
      yield* Effect.forkScoped(Effect.provideService(runProcess(closing), Term, term))
      yield* send("x", CloseAt.make({ due: at(10) }))
      yield* settled
      yield* TestClock.adjust("20 seconds")
      yield* settled
      assert.equal(yield* stateOf("x"), "open")
      is_over = false
      yield* TestClock.adjust("1 seconds")
      yield* settled
      assert.equal(yield* stateOf("x"), "closed")
    }).pipe(Effect.provide(app)),
  )

  it.effect("sends a command once, despite a kill and restart at that moment", () =>
    Effect.gen(function* () {
      yield* send("x", CloseAt.make({ due: at(10) }))
      yield* send("x", Count.make({ by: 1 }))
      for (let i = 0; i < 20; i++) {
        const running = yield* Effect.forkScoped(runProcess(closing))
        for (let step = 0; step < i; step++) yield* Effect.yieldNow
        yield* TestClock.adjust("1 seconds")
        yield* Fiber.interrupt(running)
      }
      yield* Effect.forkScoped(runProcess(closing))
      yield* settled
      const commits = yield* Stream.runCollect((yield* Log).read("test.counter.x"))
      const types = commits.flatMap(({ commit }) => commit.events.map(({ type }) => type))
      assert.deepEqual(types, ["ClosePlanned", "Counted", "Closed"])
    }).pipe(Effect.provide(app)),
  )

  it.effect("records the cause and its own name with each command", () =>
    Effect.gen(function* () {
      const cause = yield* send("x", CloseAt.make({ due: at(0) }))
      yield* Effect.forkScoped(runProcess(closing))
      yield* settled
      const last = yield* (yield* Log).load("test.counter.x")
      assert.equal(last?.commit.cause, String(cause))
      assert.equal(last?.commit.actor, "process:test-timer")
      assert.equal(last?.commit.commands.at(-1), `timer-test.counter.x-close-${at(0)}`)
    }).pipe(Effect.provide(app)),
  )
})
