/**
 * Reads as of a time: the read model equals its state when the log ended at that time. A full
 * rebuild equals the live model.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { logMemory } from "#journal"
import { readModel } from "#projections/read-model.ts"
import { blueprint } from "#projections/share-protection/blueprint.ts"
import { findTarget } from "#projections/share-protection/target.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../../world/programs/nats.ts"
import {
  answers,
  append,
  each_kind,
  kinds,
  logOf,
  stepsOf,
} from "../../world/share-protection/past.ts"
import { emptyModel, second } from "../../world/share-protection/read-model.ts"
import { target_id } from "../../world/share-protection/samples.ts"
import {
  completed,
  created,
  deleted,
  measured,
  renamed,
} from "../../world/share-protection/target-samples.ts"

const runs = 15

const steps = stepsOf("target", "policy", "policy", "backup", "backup", "job")

describe("the read model as of a time", () => {
  it("equals its state when the log ended at that time", async () => {
    const property = fc.asyncProperty(steps, (steps) =>
      Effect.gen(function* () {
        const log = logOf(steps)
        const full = yield* emptyModel
        yield* full.tellAll(log)
        const growing = yield* emptyModel
        for (const [index, one] of log.entries()) {
          yield* growing.tellAll([one])
          const { at } = one.commit
          // All commits with that timestamp are included.
          if (log[index + 1]?.commit.at === at) continue
          assert.deepEqual(yield* answers(full.db, at), yield* answers(growing.db), at)
        }
        const long_after = yield* answers(full.db, "9999-12-31T23:59:59.999Z")
        assert.deepEqual(long_after, yield* answers(growing.db))
        const before = yield* answers(full.db, second(-1))
        assert.deepEqual([before.targets.rows, before.policies, before.coverage], [[], [], []])
      }).pipe(Effect.scoped, Effect.runPromise),
    )
    await fc.assert(property, { numRuns: runs })
  }, 120_000)
})

describe("clocks that differ", () => {
  it.effect("show for each time the state of the last commit up to it", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      const stream = `target.${target_id}`
      const named = (name: string) => ({ ...renamed, name })
      yield* tell(stream, 10, created)
      yield* tell(stream, 40, named("at 40"))
      yield* tell(stream, 20, named("at 20"))
      yield* tell(stream, 20, named("at 20 too"))
      yield* tell(stream, 30, named("at 30"))
      const then = (s: number) =>
        Effect.map(findTarget(db, target_id, second(s)), (row) => row?.name)
      assert.equal(yield* then(9), undefined)
      assert.equal(yield* then(10), created.name)
      assert.equal(yield* then(19), created.name)
      assert.equal(yield* then(20), "at 20 too")
      assert.equal(yield* then(30), "at 30")
      assert.equal(yield* then(50), "at 30")
      yield* tell(stream, 5, deleted)
      assert.equal(yield* then(50), undefined)
    }).pipe(Effect.scoped),
  )
})

describe("a target that is gone", () => {
  it.effect("is shown as of that time with its usage at that time", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      yield* tell(`target.${target_id}`, 1, created)
      yield* tell(`target.${target_id}`, 2, completed)
      yield* tell(`target.${target_id}`, 3, measured)
      yield* tell(`target.${target_id}`, 4, deleted)
      const then = (s: number) => findTarget(db, target_id, second(s))
      assert.equal((yield* then(1))?.status, "pending")
      assert.isNull((yield* then(2))?.usage_stats)
      assert.deepEqual((yield* then(3))?.usage_stats, measured.usage_stats)
      assert.deepEqual((yield* then(3))?.capabilities, completed.capabilities)
      assert.isUndefined(yield* then(4))
    }).pipe(Effect.scoped),
  )
})

describe("a rebuild", () => {
  it("equals the model that followed the log live", async () => {
    const property = fc.asyncProperty(stepsOf(...kinds), stepsOf(...kinds), (before, after) =>
      Effect.gen(function* () {
        yield* append(before)
        const folder = yield* temporaryFolder
        const model = yield* Effect.provide(readModel(blueprint), sqlite(folder), { local: true })
        yield* append(after.map((step) => ({ ...step, which: step.which + each_kind })))
        yield* model.catchUp
        const followed = yield* model.dump
        yield* model.rebuild
        assert.deepEqual(yield* model.dump, followed)
        assert.isAbove(Object.values(followed).flat().length, 1)
      }).pipe(Effect.provide(Layer.fresh(logMemory)), Effect.scoped, Effect.runPromise),
    )
    await fc.assert(property, { numRuns: 5 })
  }, 60_000)
})
