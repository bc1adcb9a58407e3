import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { Checkpoint, checkpoint_stream, nextRoot } from "#actors/system/checkpoint.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { verify } from "#actors/system/verification.ts"
import { Log } from "#events/log.ts"
import { CheckpointEvent, CheckpointMade } from "#events/system/checkpoint.ts"
import { logMemory, sha256 } from "#journal"
import { MakeCheckpoint } from "#schemas/system/checkpoint.ts"
import { Count, Counter } from "../world/counter.ts"
import { given } from "../world/given.ts"
import { changed, tamperedLog } from "../world/system/tampered-log.ts"

const root = "0".repeat(64)
const made = (from: number, to: number, commits = to - from + 1) =>
  CheckpointMade.make({ from, to, commits, root })
const make = (from: number, to: number, commits = to - from + 1) =>
  MakeCheckpoint.make({ from, to, commits, root })
const checkpoints = given(Checkpoint)

describe("the checkpoints of the log", () => {
  it("start with the first commit", () => checkpoints().when(make(1, 5)).thenEvents(made(1, 5)))

  it("do not start later", () => checkpoints().when(make(2, 5)).thenRejected("svc.conflict"))

  it("are consecutive", () => checkpoints(made(1, 5)).when(make(6, 6)).thenEvents(made(6, 6)))

  it("have no gaps and do not overlap", () => {
    checkpoints(made(1, 5)).when(make(7, 9)).thenRejected("svc.conflict")
    checkpoints(made(1, 5)).when(make(5, 9)).thenRejected("svc.conflict")
    checkpoints(made(1, 5)).when(make(1, 5)).thenRejected("svc.conflict")
  })

  it("have at most one commit per position, and do not end before their start", () => {
    checkpoints()
      .when(make(1, 5, 6))
      .thenRejected("svc.conflict")
    checkpoints(made(1, 5))
      .when(make(6, 5, 1))
      .thenRejected("svc.conflict")
  })
})

describe("the root of a checkpoint", () => {
  it("covers each commit, its position, its stream and the previous root", () => {
    const commit = { position: 7, stream: "test.counter.a", hash: "c".repeat(64) }
    const roots = [
      nextRoot(sha256, root, commit),
      nextRoot(sha256, root, { ...commit, hash: "d".repeat(64) }),
      nextRoot(sha256, root, { ...commit, position: 8 }),
      nextRoot(sha256, root, { ...commit, stream: "test.counter.b" }),
      nextRoot(sha256, "1".repeat(64), commit),
    ]
    assert.equal(new Set(roots).size, roots.length)
    for (const one of roots) assert.match(one, /^[0-9a-f]{64}$/)
  })
})

const count = Effect.fnUntraced(function* (id: string, times = 1) {
  const commands = yield* Commands
  const at = new Date(yield* TestClock.testClockWith((clock) => clock.currentTimeMillis))
  for (let i = 0; i < times; i++) {
    const origin = { command_id: crypto.randomUUID(), actor: "test", at: at.toISOString() }
    yield* commands.send(origin, address(Counter, id, Count.make({ by: 1 })))
  }
})

/** Waits until the process has handled everything in the log. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 200; i++) yield* Effect.yieldNow
})

const decode = Schema.decodeUnknownSync(CheckpointEvent)

const sealed = Effect.gen(function* () {
  const commits = yield* Stream.runCollect((yield* Log).read(checkpoint_stream))
  return commits.flatMap(({ commit }) => commit.events.map((event) => decode(event)))
})

const ranges = Effect.map(sealed, (all) => all.map(({ from, to }) => [from, to]))

/** Asserts that the checkpoints are consecutive, and that their roots are correct. */
const assertWhole = Effect.gen(function* () {
  const { faults } = yield* verify({ deciders: [Counter, Checkpoint] })
  assert.deepEqual(faults, [])
})

const app = Layer.provideMerge(host, logMemory)
const running = (commits: number, seconds: number) =>
  Effect.forkScoped(runProcess(checkpointer({ commits, seconds })))

describe("the checkpointer", () => {
  it.effect("seals the configured number of commits once they exist", () =>
    Effect.gen(function* () {
      yield* running(10, 300)
      yield* count("x", 9)
      yield* settled
      assert.deepEqual(yield* ranges, [])
      yield* count("x", 1)
      yield* settled
      assert.deepEqual(yield* ranges, [[1, 10]])
      yield* assertWhole
    }).pipe(Effect.provide(app)),
  )

  it.effect("seals fewer after the first one has waited long enough", () =>
    Effect.gen(function* () {
      yield* running(1000, 300)
      yield* count("x", 3)
      yield* settled
      yield* TestClock.adjust("299 seconds")
      yield* settled
      assert.deepEqual(yield* ranges, [])
      yield* TestClock.adjust("1 seconds")
      yield* settled
      assert.deepEqual(yield* ranges, [[1, 3]])
      yield* assertWhole
    }).pipe(Effect.provide(app)),
  )

  it.effect("never seals its own commits alone", () =>
    Effect.gen(function* () {
      yield* running(1, 1)
      yield* count("x", 1)
      for (let i = 0; i < 20; i++) {
        yield* settled
        yield* TestClock.adjust("10 seconds")
      }
      assert.equal(yield* (yield* Log).head(""), 2)
      yield* count("x", 1)
      yield* settled
      assert.deepEqual(yield* ranges, [
        [1, 1],
        [2, 3],
      ])
    }).pipe(Effect.provide(app)),
  )

  it.effect("seals an existing long log in few steps, and continues at its end", () =>
    Effect.gen(function* () {
      yield* count("x", 95)
      yield* running(10, 300)
      yield* settled
      const first = yield* sealed
      assert.equal(first[0]?.from, 1)
      yield* count("y", 20)
      yield* settled
      yield* TestClock.adjust("300 seconds")
      yield* settled
      assert.isAtLeast((yield* sealed).at(-1)?.to ?? 0, 115)
      yield* assertWhole
    }).pipe(Effect.provide(app)),
  )

  it.effect("derives the command id of an attempt from its start, and records its cause", () =>
    Effect.gen(function* () {
      yield* running(2, 300)
      yield* count("x", 2)
      yield* settled
      const last = yield* (yield* Log).load(checkpoint_stream)
      assert.deepEqual(last?.commit.commands, ["checkpoint-1"])
      assert.equal(last?.commit.cause, "2")
      assert.equal(last?.commit.actor, "process:system-checkpointer")
    }).pipe(Effect.provide(app)),
  )

  it.effect("proposes an unchanged range until the log has sealed it", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const run = yield* checkpointer({ commits: 2, seconds: 300 }).start
      yield* count("x", 2)
      yield* Stream.runForEach(log.read(""), run.fold)
      const pending = run.due(0)
      assert.equal(pending.now[0]?.command_id, "checkpoint-1")
      const before = yield* log.head("")
      yield* count("x", 5)
      yield* Stream.runForEach(log.read("", before), run.fold)
      assert.deepEqual(run.due(0), pending)
    }).pipe(Effect.provide(app)),
  )

  it.effect("ignores commits that are delivered twice", () =>
    Effect.gen(function* () {
      const log = yield* Log
      const sealing = yield* running(10, 300)
      yield* Effect.repeat(Effect.andThen(count("x", 7), settled), { times: 5 })
      yield* Fiber.interrupt(sealing)
      yield* count("x", 20)
      assert.isAtLeast((yield* sealed).length, 3)

      const { start, from } = checkpointer({ commits: 10, seconds: 300 })
      const proposals = [yield* from === "lasts" ? Effect.succeed(0) : from, 0].map((position) =>
        Effect.gen(function* () {
          const run = yield* start
          yield* Stream.runForEach(log.read("", position), run.fold)
          if (position === 0) {
            yield* Stream.runForEach(Stream.take(log.read(checkpoint_stream), 1), run.fold)
          }
          return run.due(0).now[0]
        }),
      )
      const [once, again] = yield* Effect.all(proposals)
      assert.isDefined(once)
      assert.deepEqual(again, once)
    }).pipe(Effect.provide(app)),
  )

  it.effect("makes one gap-free sequence despite kills and restarts", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 60; i++) {
        const process = yield* running(3, 5)
        for (let step = 0; step < i % 17; step++) yield* Effect.yieldNow
        yield* count(`c${i % 3}`, 1 + (i % 4))
        for (let step = 0; step < (i * 7) % 23; step++) yield* Effect.yieldNow
        yield* TestClock.adjust("1 seconds")
        yield* Fiber.interrupt(process)
      }
      yield* running(3, 5)
      yield* settled
      assert.isAbove((yield* sealed).length, 10)
      yield* assertWhole
    }).pipe(Effect.provide(app)),
  )

  it.effect("makes one gap-free sequence together with another checkpointer", () =>
    Effect.gen(function* () {
      yield* running(3, 5)
      yield* running(4, 3)
      for (let i = 0; i < 100; i++) {
        yield* count(`c${i % 5}`)
        for (let step = 0; step < i % 9; step++) yield* Effect.yieldNow
        if (i % 10 === 0) yield* TestClock.adjust("2 seconds")
      }
      yield* settled
      yield* TestClock.adjust("10 seconds")
      yield* settled
      assert.isAbove((yield* sealed).length, 10)
      yield* assertWhole
      const { unsealed } = yield* verify({ deciders: [] })
      assert.isBelow(unsealed, 4)
    }).pipe(Effect.provide(app)),
  )

  it.effect("continues from the end of another checkpointer", () =>
    Effect.gen(function* () {
      for (const gone of [0, 1]) {
        const both = [yield* running(3, 5), yield* running(3, 5)] as const
        yield* Effect.repeat(Effect.andThen(count("x"), settled), { times: 12 })
        yield* Fiber.interrupt(both[gone === 0 ? 0 : 1])
        const before = (yield* sealed).length
        yield* Effect.repeat(Effect.andThen(count("x"), settled), { times: 12 })
        assert.isAbove((yield* sealed).length, before + 2)
        yield* Fiber.interrupt(both[gone === 0 ? 1 : 0])
      }
      yield* assertWhole
    }).pipe(Effect.provide(app)),
  )
})

describe("the tree of a checkpoint", () => {
  const withTree = (to: number, size: number, peaks: number) =>
    MakeCheckpoint.make({
      ...make(1, to),
      tree: { size, peaks: Array.from({ length: peaks }, () => root) },
    })

  it("covers all commits up to its end, with the right number of peaks", () => {
    const holding = withTree(5, 5, 2)
    checkpoints()
      .when(holding)
      .thenEvents(CheckpointMade.make({ ...holding, type: "CheckpointMade" }))
    checkpoints()
      .when(withTree(5, 4, 1))
      .thenRejected("svc.conflict")
    checkpoints()
      .when(withTree(5, 5, 3))
      .thenRejected("svc.conflict")
  })

  it.effect("is computed from the whole log if the previous checkpoint had none", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      yield* count("x", 5)
      const { root } = yield* verify({ deciders: [] })
      const origin = { command_id: "old", actor: "old release", at: "2026-11-20T12:00:00Z" }
      const old = MakeCheckpoint.make({ ...made(1, 5), type: "MakeCheckpoint", root })
      yield* commands.send(origin, address(Checkpoint, "log", old))
      yield* running(3, 300)
      yield* count("x", 5)
      yield* settled
      const [first, second] = yield* sealed
      assert.isUndefined(first?.tree)
      assert.equal(second?.tree?.size, second?.to)
      yield* assertWhole
    }).pipe(Effect.provide(app)),
  )

  it.effect("is a fault if its root is right but its tree is wrong", () =>
    Effect.gen(function* () {
      yield* running(3, 300)
      yield* count("x", 9)
      yield* settled
      const commits = yield* Stream.runCollect((yield* Log).read(""))
      const forged = commits.map((one) => {
        const events = one.commit.events.map((event) => {
          const { tree } = event as { readonly tree?: { readonly peaks: ReadonlyArray<string> } }
          return tree === undefined
            ? event
            : { ...event, tree: { ...tree, peaks: tree.peaks.map(() => root) } }
        })
        return one.stream === checkpoint_stream ? changed(one, { events }) : one
      })
      const { faults } = yield* Effect.provide(verify({ deciders: [] }), tamperedLog(forged))
      const found = faults.filter(({ kind, found }) => kind === "checkpoint" && /^tree/.test(found))
      assert.isNotEmpty(found)
    }).pipe(Effect.provide(app)),
  )
})
