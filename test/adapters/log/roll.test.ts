import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RollFailed, rollLog } from "#adapters/log/roll.ts"
import { NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { findGenerations, type GenerationsOptions, logJetStream } from "#journal"
import { commitOf } from "../../contract/log-commits.ts"
import { all, count, fresh, opened, whole, written } from "../../world/log/generation-log.ts"
import { describeNats } from "../../world/programs/nats.ts"

/** Begins a generation and stops after the step with this name. */
const rolledUntil = (options: GenerationsOptions, last: string) => {
  const stop = new RollFailed({ message: "stopped" })
  const after = (step: string) => (step === last ? Effect.fail(stop) : Effect.void)
  return Effect.map(Effect.flip(rollLog({ ...options, after })), (failure) =>
    assert.equal(failure, stop),
  )
}

/** The log as opened by a release that does not support generations. */
const oldRelease = ({ name }: GenerationsOptions) => Layer.fresh(logJetStream({ stream: name }))

const leftover = Effect.fnUntraced(function* ({ name }: GenerationsOptions) {
  const { jsm } = yield* NatsConnection
  const { others } = yield* findGenerations(jsm, name)
  return others.map(({ stream }) => stream)
})

const archived = ({ folder }: GenerationsOptions) => join(folder, "generation-1.ndjson.gz")

describeNats("the old generation of the log", (it) => {
  it.effect("stays where its file is gone, cut off or damaged, though all else was done", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      yield* opened(options, written)
      yield* rolledUntil(options, "began")
      const path = archived(options)
      const right = readFileSync(path)
      const damages = [
        () => rmSync(path),
        () => writeFileSync(path, right.subarray(0, -1)),
        () =>
          writeFileSync(
            path,
            right.map((byte, i) => (i === 100 ? byte ^ 1 : byte)),
          ),
      ]
      for (const damage of damages) {
        damage()
        assert.include(String(yield* Effect.flip(rollLog(options))), "is incomplete")
        assert.deepEqual(yield* leftover(options), [options.name])
      }
      writeFileSync(path, right)
      yield* rollLog(options)
      assert.deepEqual(yield* leftover(options), [])
      yield* opened(options, whole)
    }).pipe(Effect.scoped),
  )

  it.effect("stays where a release that knows no generations wrote to it meanwhile", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      yield* opened(options, written)
      yield* rolledUntil(options, "began")
      const append = { stream: "test.counter.late", expected: 0, commit: commitOf("late", "x") }
      yield* Effect.provide(
        Effect.flatMap(Log, (log) => log.append([append])),
        oldRelease(options),
      )
      assert.include(String(yield* Effect.flip(rollLog(options))), "written to afterwards")
      assert.deepEqual(yield* leftover(options), [options.name])
    }).pipe(Effect.scoped),
  )

  it.effect("is not taken for an empty log by a release that knows no generations", () =>
    Effect.gen(function* () {
      // The final state, and the state after the second-to-last step, once the log has been opened.
      const rolls = [
        rollLog,
        (options: GenerationsOptions) => rolledUntil(options, "removed the old stream"),
      ]
      for (const roll of rolls) {
        yield* Effect.gen(function* () {
          const options = yield* fresh
          yield* opened(options, written)
          yield* roll(options)
          yield* opened(options, whole)
          const failure = yield* Effect.flip(Effect.provide(Log, oldRelease(options)))
          assert.include(failure.message, `The stream ${options.name} has unexpected settings`)
          yield* opened(options, whole)
        }).pipe(Effect.scoped)
      }
    }),
  )

  it.effect("may have nothing but first commits", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const once = Effect.forEach(["a", "b", "c"], (id) => count(id, 1))
      const before = yield* opened(options, Effect.andThen(once, all()))
      yield* rollLog(options)
      assert.deepEqual((yield* opened(options, all())).slice(0, 3), before)
      yield* opened(options, Effect.andThen(count("a", 2), whole))
    }).pipe(Effect.scoped),
  )
})
