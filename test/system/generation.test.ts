import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { Generation, generation_id, generation_stream } from "#actors/system/generation.ts"
import { peaksOf } from "#actors/system/tree.ts"
import { verify } from "#actors/system/verification.ts"
import { Log, type Recorded } from "#events/log.ts"
import { GenerationStarted } from "#events/system/generation.ts"
import { sha256 } from "#journal"
import { StartGeneration } from "#schemas/system/generation.ts"
import { Counter } from "../world/counter.ts"
import { given } from "../world/given.ts"
import { count, emptyLog } from "../world/system/sealed.ts"
import { changed, tamperedLog } from "../world/system/tampered-log.ts"

const range = (generation: number, base: number, size = base) => ({
  generation,
  base,
  aggregates: 1,
  root: "0".repeat(64),
  tree: { size, peaks: Array.from({ length: peaksOf(size) }, () => "1".repeat(64)) },
  archive: { bytes: 1, sha256: "2".repeat(64) },
})
const started = (generation: number, base: number) =>
  GenerationStarted.make(range(generation, base))
const start = (...args: Parameters<typeof range>) => StartGeneration.make(range(...args))
const generations = given(Generation)

describe("the generations of the log", () => {
  it("are consecutive, at rising positions", () => {
    generations().when(start(2, 5)).thenEvents(started(2, 5))
    generations(started(2, 5)).when(start(3, 6)).thenEvents(started(3, 6))
    generations().when(start(2, 1)).thenEvents(started(2, 1))
  })

  it("have no gaps, and do not start before the previous one", () => {
    generations().when(start(3, 5)).thenRejected("svc.conflict")
    generations(started(2, 5)).when(start(2, 9)).thenRejected("svc.conflict")
    generations(started(2, 5)).when(start(3, 5)).thenRejected("svc.conflict")
  })

  it("start with the tree over all earlier commits", () =>
    generations()
      .when(start(2, 5, 4))
      .thenRejected("svc.conflict"))
})

const story = Effect.gen(function* () {
  for (let i = 1; i <= 6; i++) yield* count(i % 3 === 0 ? "a" : "b", i)
  return yield* Stream.runCollect((yield* Log).read(""))
}).pipe(Effect.provide(Layer.fresh(emptyLog)))

/** The verification result if aggregates are loaded from changed last commits. */
const loadedFrom = (
  commits: ReadonlyArray<Recorded>,
  change: (lasts: ReadonlyArray<Recorded>) => ReadonlyArray<Recorded>,
) =>
  Effect.gen(function* () {
    const log = yield* Log
    const lasts = yield* Stream.runCollect(log.lasts(""))
    return yield* Effect.provideService(verify({ deciders: [Counter] }), Log, {
      ...log,
      lasts: () => Stream.fromIterable(change(lasts)),
    })
  }).pipe(Effect.provide(tamperedLog(commits)))

describe("the copies at the start of a generation", () => {
  it.effect("are exactly the last commits of the streams", () =>
    Effect.gen(function* () {
      const commits = yield* story
      const same = yield* loadedFrom(commits, (lasts) => lasts)
      assert.deepEqual(same.faults, [])
      const snapshot = { machine: 1, value: "open", context: { total: 1, due: null } }
      const wrong = yield* loadedFrom(commits, (lasts) =>
        lasts.map((one) => (one.stream === "test.counter.a" ? changed(one, { snapshot }) : one)),
      )
      assert.deepEqual(
        wrong.faults.map(({ kind, position, stream }) => [kind, position, stream]),
        [["copy", 6, "test.counter.a"]],
      )
      const old = yield* loadedFrom(commits, (lasts) =>
        lasts.map((one) => (one.stream === "test.counter.a" ? (commits[2] ?? one) : one)),
      )
      assert.deepEqual(
        old.faults.map(({ kind, position }) => [kind, position]),
        [["copy", 3]],
      )
      const missing = yield* loadedFrom(commits, (lasts) => lasts.slice(1))
      assert.deepEqual(
        missing.faults.map(({ kind, found }) => [kind, found]),
        [["copy", "nothing"]],
      )
      const invented = yield* loadedFrom(commits, (lasts) => [
        ...lasts,
        ...lasts.slice(0, 1).map((one) => ({ ...one, stream: "test.counter.forged" })),
      ])
      assert.deepEqual(
        invented.faults.map(({ expected }) => expected),
        ["no such aggregate"],
      )
    }),
  )

  it.effect("are not a fault if a commit arrives during the verification", () =>
    Effect.gen(function* () {
      const commits = yield* story
      const later = yield* loadedFrom(commits, (lasts) =>
        lasts.map((one) => ({ ...one, position: one.position + 10, hash: sha256("later") })),
      )
      assert.deepEqual(later.faults, [])
    }),
  )
})

describe("the first commit of a generation", () => {
  it.effect("is a fault if it has a wrong root or a wrong end", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const log = yield* Log
      yield* count("a", 1)
      yield* count("a", 2)
      const { root } = yield* verify({ deciders: [] })
      const origin = { command_id: "generation-2", actor: "test", at: "2026-11-20T12:00:00Z" }
      const command = StartGeneration.make({ ...range(2, 2), root })
      yield* commands.send(origin, address(Generation, generation_id, command))
      const commits = yield* Stream.runCollect(log.read(""))
      const faults = (change: Readonly<Record<string, unknown>>) =>
        Effect.provide(
          Effect.map(verify({ deciders: [] }), (found) => found.faults.map(({ kind }) => kind)),
          tamperedLog(
            commits.map((one) =>
              one.stream === generation_stream
                ? changed(one, { events: one.commit.events.map((e) => ({ ...e, ...change })) })
                : one,
            ),
          ),
        )
      assert.deepEqual(yield* faults({}), [])
      assert.deepEqual(yield* faults({ root: "f".repeat(64) }), ["checkpoint"])
      assert.deepEqual(yield* faults({ base: 1 }), ["checkpoint"])
    }).pipe(Effect.provide(emptyLog)),
  )
})
