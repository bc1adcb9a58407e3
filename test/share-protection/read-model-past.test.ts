/**
 * The past: as of a time, the read model answers what it answered when the log ended there. And a
 * rebuild of the whole answers what the followed one does.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { type AnyMachineSnapshot, initialTransition, transition } from "xstate"
import { logMemory } from "#adapters/log-memory.ts"
import { sqlite } from "#adapters/sqlite.ts"
import { Log, type Recorded } from "#events/log.ts"
import { readModel } from "#projections/read-model.ts"
import { blueprint } from "#projections/share-protection/blueprint.ts"
import { findPolicy, listPolicies } from "#projections/share-protection/policy.ts"
import { findTarget, listTargets } from "#projections/share-protection/target.ts"
import { coverageOf, usageOf } from "#projections/share-protection/usage.ts"
import type { Message } from "#schemas/message.ts"
import { PolicyId, ProjectId, TargetId } from "#schemas/share-protection/id.ts"
import { temporaryFolder } from "../nats.ts"
import { happenings } from "./happenings.ts"
import { emptyModel, recorded, second } from "./read-model-given.ts"
import { domain_id, policy_id, project_id, share_id, target_id, uuid } from "./samples.ts"
import { completed, created, deleted, measured, renamed } from "./target-samples.ts"

type Model = Effect.Success<typeof emptyModel>
type Db = Model["db"]
type Kind = keyof typeof happenings

/** Which of a kind's aggregates something happens to, what, and so many seconds later. */
interface Step {
  readonly kind: Kind
  readonly which: number
  readonly what: number
  readonly after_s: number
}

const runs = 15
const each_kind = 3
const projects = [project_id, ProjectId.make("p2"), ProjectId.make("p3")]

const kinds = Object.keys(happenings) as ReadonlyArray<Kind>

/** The id of a kind's `which`-th aggregate. */
const idOf = (kind: Kind, which: number) => uuid(100 * (kinds.indexOf(kind) + 1) + which)

const policyId = (which: number) => uuid(5000 + which)

/** The sample event as the `which`-th aggregate's own. */
const own = (event: Message, which: number): Message =>
  JSON.parse(
    JSON.stringify(event)
      .replaceAll(policy_id, policyId(which))
      .replaceAll(share_id, idOf("policy", which))
      .replaceAll(target_id, idOf("target", which))
      .replaceAll(project_id, projects[which % each_kind] ?? "")
      .replaceAll(
        '"domain_id":null',
        which % each_kind === 1 ? `"domain_id":"${domain_id}"` : "$&",
      ),
  )

/** A log of what the charts allow, out of steps that they may not. */
const logOf = (steps: ReadonlyArray<Step>): ReadonlyArray<Recorded> => {
  const states = new Map<string, AnyMachineSnapshot>()
  const log: Array<Recorded> = []
  let at_s = 0
  for (const { kind, which, what, after_s } of steps) {
    const { machine, events } = happenings[kind]
    const stream = `${kind}.${idOf(kind, which)}`
    const state = states.get(stream) ?? initialTransition(machine)[0]
    const possible = events.filter((event) => state.can(event))
    const event = possible[what % possible.length]
    if (event === undefined) continue
    at_s += after_s
    states.set(stream, transition(machine, state, event)[0])
    log.push(recorded(log.length + 1, stream, second(at_s), [own(event, which)]))
  }
  return log
}

const stepsOf = (...kinds: ReadonlyArray<Kind>) =>
  fc.array(
    fc.record({
      kind: fc.constantFrom(...kinds),
      which: fc.nat(each_kind - 1),
      what: fc.nat(1000),
      after_s: fc.nat(2),
    }),
    { minLength: 40, maxLength: 120 },
  )

const steps = stepsOf("target", "policy", "policy", "backup", "backup", "job")

/** What is kept of a row: the rest of it matters only now. */
const kept = <Row extends object>(rows: ReadonlyArray<Row>) =>
  rows.map((row) => ({ ...row, last_tick: null, in_flight_backup_id: null }))

const page = { limit: 2 }
const whole = { limit: 100 }

/** All that can be asked of then; of now without a time. */
const answers = (db: Db, as_of?: string) =>
  Effect.gen(function* () {
    const [first] = projects
    const targets = yield* listTargets(db, {}, whole, as_of)
    const policies = yield* listPolicies(db, {}, whole, as_of)
    const marker = targets.rows[0]?.id
    return {
      targets,
      more: yield* listTargets(db, {}, { limit: 1, marker }, as_of),
      of_project: yield* listTargets(db, { project_id: first }, page, as_of),
      of_status: yield* listTargets(db, { status: "available" }, page, as_of),
      one: yield* findTarget(db, TargetId.make(idOf("target", 1)), as_of),
      policies: kept(policies.rows),
      of_target: kept(
        (yield* listPolicies(db, { target_id: TargetId.make(idOf("target", 0)) }, page, as_of))
          .rows,
      ),
      policy: kept([(yield* findPolicy(db, PolicyId.make(policyId(2)), as_of)) ?? {}]),
      usage: yield* usageOf(db, {}, as_of),
      usage_of_project: yield* usageOf(db, { project_id: first }, as_of),
      usage_of_domain: yield* usageOf(db, { domain_id }, as_of),
      coverage: yield* coverageOf(db, as_of),
    }
  })

describe("the read model as of a time", () => {
  it("answers what it answered when the log ended there", async () => {
    const property = fc.asyncProperty(steps, (steps) =>
      Effect.gen(function* () {
        const log = logOf(steps)
        const full = yield* emptyModel
        yield* full.tellAll(log)
        const growing = yield* emptyModel
        for (const [index, one] of log.entries()) {
          yield* growing.tellAll([one])
          const { at } = one.commit
          // Whatever else happened at that time belongs to it.
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
  it.effect("leave of each time what the last commit not later says", () =>
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
  it.effect("is shown as of then with what was measured by then", () =>
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

/** Appends what the log of these steps has, each commit to the end of its stream. */
const append = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const log = yield* Log
  const ends = new Map<string, number>()
  for (const { stream, commit } of logOf(steps)) {
    const prev = log.genesis(stream)
    const [end] = yield* log.append([
      { stream, expected: ends.get(stream) ?? 0, commit: { ...commit, prev } },
    ])
    ends.set(stream, end?.position ?? 0)
  }
})

describe("a rebuild", () => {
  it("equals the model that followed the log", async () => {
    const property = fc.asyncProperty(stepsOf(...kinds), stepsOf(...kinds), (before, after) =>
      Effect.gen(function* () {
        yield* append(before)
        const folder = yield* temporaryFolder
        const model = yield* Effect.provide(readModel(blueprint), sqlite(folder), { local: true })
        yield* append(after.map((step) => ({ ...step, which: step.which + each_kind })))
        yield* model.catchUp
        const followed = model.dump()
        yield* model.rebuild
        assert.deepEqual(model.dump(), followed)
        assert.isAbove(Object.values(followed).flat().length, 1)
      }).pipe(Effect.provide(Layer.fresh(logMemory)), Effect.scoped, Effect.runPromise),
    )
    await fc.assert(property, { numRuns: 5 })
  }, 60_000)
})
