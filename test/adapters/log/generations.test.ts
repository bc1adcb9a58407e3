import { readdirSync, rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Result, Stream } from "effect"
import { runProcess } from "#actors/process.ts"
import { checkpoint_stream } from "#actors/system/checkpoint.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { generation_stream } from "#actors/system/generation.ts"
import { verify } from "#actors/system/verification.ts"
import { RollFailed, rollLog } from "#adapters/log/roll.ts"
import { publishedEventsMemory } from "#adapters/published/memory.ts"
import { NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { findGenerations } from "#journal"
import { publisher } from "#projections/published/publisher.ts"
import { PublishedEvents, publication } from "#projections/published-events.ts"
import { commitOf, next } from "../../contract/log-commits.ts"
import { CounterEvent } from "../../world/counter.ts"
import {
  all,
  count,
  fresh,
  logState,
  opened,
  rolled,
  whole,
  written,
} from "../../world/log/generation-log.ts"
import { describeNats } from "../../world/programs/nats.ts"
import { publishingOf } from "../../world/publishing.ts"

describeNats("generations of the log", (it) => {
  it.effect("a new one answers all that the old one did, at the same positions", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const before = yield* opened(options, Effect.andThen(written, logState))
      const rolled = yield* rollLog(options)
      assert.deepEqual(
        [rolled.generation, rolled.base, rolled.aggregates],
        [2, before.all.length, before.lasts.length],
      )
      assert.deepEqual(yield* opened(options, logState), before)
      yield* opened(options, whole)
    }).pipe(Effect.scoped),
  )

  it.effect("it begins with a commit that names what was before", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const { root, tree_root } = yield* opened(
        options,
        Effect.andThen(written, verify({ deciders: [] })),
      )
      const { base } = yield* rollLog(options)
      const began = yield* opened(options, all("system"))
      const [event] = began[0]?.commit.events ?? []
      assert.equal(began[0]?.position, base + 1)
      assert.deepInclude(event ?? {}, { type: "GenerationStarted", generation: 2, base, root })
      const found = yield* opened(options, verify({ deciders: [], until: base }))
      assert.deepEqual([found.root, found.tree_root], [root, tree_root])
    }).pipe(Effect.scoped),
  )

  it.effect("goes on: versions, chains and the ids of commands are kept", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const before = yield* opened(options, Effect.andThen(written, logState))
      const { base } = yield* rollLog(options)
      yield* opened(
        options,
        Effect.gen(function* () {
          const log = yield* Log
          const old = before.lasts.find(({ stream }) => stream === "test.counter.rarely")
          assert.isDefined(old)
          // A command from before the new generation is not executed again.
          assert.equal(yield* count("rarely", 14), old?.position)
          assert.equal(yield* log.head(""), base + 1)
          // A new commit continues the version and the hash chain.
          assert.equal(yield* count("rarely", 15), base + 2)
          const last = yield* log.load("test.counter.rarely")
          assert.equal(last?.commit.prev, old?.hash)
          assert.equal(yield* count("new", 1), base + 3)
          assert.equal((yield* all("test.counter.rarely")).length, 3)
          yield* whole
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("refuses who expects an older version, whether it is copied or not", () =>
    Effect.gen(function* () {
      const { options } = yield* rolled
      yield* opened(
        options,
        Effect.gen(function* () {
          const log = yield* Log
          const stream = "test.counter.rarely"
          const right = yield* next(stream, "right")
          const tries = [0, 1, right.expected - 1, right.expected + 1].map((expected) =>
            log.append([{ stream, expected, commit: commitOf(`at-${expected}`, "x") }]),
          )
          for (const one of tries) {
            const result = yield* Effect.result(one)
            assert.equal(Result.isFailure(result) && result.failure._tag, "VersionConflict")
          }
          yield* log.append([right])
          const again = yield* Effect.result(log.append([right]))
          assert.equal(Result.isFailure(again) && again.failure._tag, "VersionConflict")
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("of many writers at a copied version one wins", () =>
    Effect.gen(function* () {
      const { options } = yield* rolled
      yield* opened(
        options,
        Effect.gen(function* () {
          const log = yield* Log
          const one = yield* next("test.counter.often", "race")
          const results = yield* Effect.all(
            Array.from({ length: 8 }, () => Effect.result(log.append([one]))),
            { concurrency: "unbounded" },
          )
          assert.equal(results.filter(Result.isSuccess).length, 1)
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("follow one another, with checkpoints over all of them", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const sealing = Effect.gen(function* () {
        const process = yield* Effect.forkChild(
          runProcess(checkpointer({ commits: 5, seconds: 0 })),
        )
        const log = yield* Log
        const head = yield* log.head("test")
        yield* Effect.repeat(Effect.delay(log.load(checkpoint_stream), 20), {
          until: (last) => (last?.position ?? 0) > head,
        })
        yield* Fiber.interrupt(process)
      })
      yield* opened(options, Effect.andThen(written, sealing))
      for (const generation of [2, 3, 4]) {
        const rolled = yield* rollLog(options)
        assert.equal(rolled.generation, generation)
        yield* opened(
          options,
          Effect.gen(function* () {
            for (let n = 1; n <= 6; n++) yield* count(`of-${generation}`, n)
            yield* count("often", 20 + generation)
            yield* sealing
            yield* whole
          }),
        )
      }
      const found = yield* opened(options, all(generation_stream))
      assert.equal(found.length, 3)
      assert.equal(readdirSync(options.folder).length, 6)
      const { jsm } = yield* NatsConnection
      const { current, others } = yield* findGenerations(jsm, options.name)
      assert.deepEqual([current.number, others], [4, []])
    }).pipe(Effect.scoped),
  )

  it.effect("publishes each event once, including earlier events that were not published yet", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const publications = [
        publication({
          part: "test.counter",
          event: CounterEvent,
          toDraft: (event) => ({ type: "counted", data: { ...event } }),
        }),
      ]
      const events = yield* Effect.provide(
        PublishedEvents,
        yield* Layer.build(publishedEventsMemory),
      )
      /** Publishes until `count` events have been published. */
      const publish = (count: number) =>
        opened(
          options,
          Effect.gen(function* () {
            const publishing = yield* Effect.forkChild(publisher(publishingOf(publications)))
            const some = yield* Stream.runCollect(Stream.take(events.follow(0, {}), count))
            yield* Fiber.interrupt(publishing)
            return some.map(({ event }) => event.id)
          }).pipe(Effect.provideService(PublishedEvents, events)),
        )
      yield* opened(
        options,
        Effect.forEach([1, 2, 3], (n) => count("a", n)),
      )
      yield* publish(3)
      yield* opened(
        options,
        Effect.forEach([4, 5], (n) => count("a", n)),
      )
      yield* rollLog(options)
      yield* opened(options, count("a", 6))
      const ids = yield* publish(6)
      assert.equal(new Set(ids).size, 6)
      const last = yield* events.last
      assert.equal(last?.sequence, 6)
    }).pipe(Effect.scoped),
  )

  it.effect("says what is missing where the file of an old one is gone or cut off", () =>
    Effect.gen(function* () {
      const { options, base } = yield* rolled
      const data = join(options.folder, "generation-1.ndjson.gz")
      const read = (after: number) => opened(options, Effect.result(all("", after)))
      truncateSync(data, 100)
      const cut = yield* read(0)
      assert.include(JSON.stringify(cut), "is truncated")
      rmSync(data)
      const gone = yield* read(0)
      assert.include(JSON.stringify(gone), "Restore its files")
      // Loading and reading recent commits use only the stream, not the archive file.
      assert.isTrue(Result.isSuccess(yield* read(base)))
      assert.isAbove(yield* opened(options, count("often", 30)), base)
    }).pipe(Effect.scoped),
  )

  it.effect("is not begun where nothing was written since the last", () =>
    Effect.gen(function* () {
      const { options } = yield* rolled
      assert.include(String(yield* Effect.flip(rollLog(options))), "No commits were written")
    }).pipe(Effect.scoped),
  )

  it.effect("ended after any step, leaves the old one or the new one whole, and goes on", () =>
    Effect.gen(function* () {
      const { steps } = yield* Effect.gen(function* () {
        const options = yield* fresh
        yield* opened(options, written)
        const steps: Array<string> = []
        const after = (step: string) => Effect.sync(() => void steps.push(step))
        yield* rollLog({ ...options, after })
        return { steps }
      }).pipe(Effect.scoped)
      assert.isAtLeast(steps.length, 7)
      for (const [i, step] of steps.entries()) {
        yield* Effect.gen(function* () {
          const options = yield* fresh
          const before = yield* opened(options, Effect.andThen(written, logState))
          let seen = 0
          const stop = new RollFailed({ message: step })
          const after = () => (seen++ === i ? Effect.fail(stop) : Effect.void)
          const ended = yield* Effect.flip(rollLog({ ...options, after }))
          assert.equal(ended, stop, step)
          const { jsm } = yield* NatsConnection
          const { current } = yield* findGenerations(jsm, options.name)
          assert.equal(current.number, i < steps.indexOf("began") ? 1 : 2, step)
          assert.deepEqual(yield* opened(options, logState), before, step)
          yield* opened(options, Effect.andThen(count("often", 40), whole))
          const again = yield* Effect.result(rollLog(options))
          assert.isTrue(Result.isSuccess(again), `${step}: ${JSON.stringify(again)}`)
          // A generation that has begun does not begin again; only the rest of the old one is
          // removed.
          if (Result.isSuccess(again) && step === "began") {
            assert.isUndefined(again.success.archive_bytes)
          }
          yield* opened(options, Effect.andThen(count("often", 41), whole))
        }).pipe(Effect.scoped)
      }
    }),
  )
})
