import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { searches } from "#actors/carrier-search/search.ts"
import { Commands, Unavailable } from "#actors/commands.ts"
import { epochs_max, type FactContext } from "#actors/fact-log.ts"
import { firstBatch } from "#actors/first-batch.ts"
import { host } from "#actors/host.ts"
import { type Spool, SpoolFailed } from "#actors/spool.ts"
import { spooler } from "#actors/spooler.ts"
import { spoolMemory } from "#adapters/spool/memory.ts"
import type { SearchEvent } from "#events/carrier-search/search.ts"
import { commit_bytes_max, Log, snapshot_bytes_max } from "#events/log.ts"
import { logMemory } from "#journal"
import type { SearchFact } from "#schemas/carrier-search/search.ts"
import { facts_max } from "#schemas/spooled.ts"
import { searchFact } from "../world/spooled.ts"

const node_id = "node-1"

const commits = Effect.gen(function* () {
  const log = yield* Log
  return yield* Stream.runCollect(log.read(`carrier-search.search.${node_id}`))
})
const events = Effect.map(commits, (commits) =>
  // This stream has only searches.
  commits.flatMap(({ commit }) => commit.events as ReadonlyArray<SearchEvent>),
)
const numbers = Effect.map(events, (events) => events.map(({ start }) => start))

const start = (spool: Spool<SearchFact>) =>
  Effect.forkChild(spooler({ spool, kind: searches, node_id }))

/** Runs long enough to process the whole spool, then kills the spooler. */
const run = Effect.fnUntraced(function* (spool: Spool<SearchFact>, ms = 1_000) {
  const fiber = yield* start(spool)
  yield* TestClock.adjust(ms)
  yield* Fiber.interrupt(fiber)
})

const addAll = (spool: Spool<SearchFact>, ...numbers: ReadonlyArray<number>) =>
  Effect.forEach(numbers, (n) => spool.add(searchFact(n)), { discard: true })

const held = (spool: Spool<SearchFact>) => Effect.map(spool.scan(0, 10_000), ({ length }) => length)

const tested = (
  body: (
    spool: Spool<SearchFact>,
    lines: ReadonlyArray<string>,
  ) => Effect.Effect<void, unknown, Log | Commands>,
) => {
  const lines: Array<string> = []
  const heard = Logger.make(({ message }) => void lines.push(String(message)))
  const around = Layer.provideMerge(host, logMemory)
  return Effect.flatMap(spoolMemory<SearchFact>(), (spool) => body(spool, lines)).pipe(
    Effect.provide(Layer.merge(around, Logger.layer([heard]))),
  )
}

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

describe("the spooler", () => {
  it.effect("records facts once and in order, and deletes them from the spool", () =>
    tested(
      Effect.fnUntraced(function* (spool, lines) {
        const fiber = yield* start(spool)
        yield* addAll(spool, 3, 1)
        yield* TestClock.adjust(300)
        yield* addAll(spool, 2)
        yield* TestClock.adjust(300)
        assert.deepEqual(yield* numbers, [3, 1, 2])
        const [first, second, third] = yield* events
        assert.deepEqual(
          [first, second, third].map((event) => [event?.epoch, event?.after, event?.cursor]),
          [0, 1, 2].map((after) => [spool.epoch, after, after + 1]),
        )
        assert.deepEqual(first, {
          type: "CarrierSearchCompleted",
          epoch: spool.epoch,
          after: 0,
          cursor: 1,
          ...searchFact(3),
        })
        assert.equal(yield* held(spool), 0)
        const [commit] = yield* commits
        assert.equal(commit?.commit.actor, `process:spool-${node_id}`)
        yield* Fiber.interrupt(fiber)
        assert.deepEqual(lines, [])
      }),
    ),
  )

  it.effect("continues after a kill between record and acknowledgement", () =>
    tested(
      Effect.fnUntraced(function* (spool) {
        yield* addAll(spool, 1, 2)
        yield* run({ ...spool, acknowledge: () => Effect.never })
        assert.equal(yield* held(spool), 2)
        yield* addAll(spool, 3)
        yield* run(spool)
        assert.deepEqual(yield* numbers, [1, 2, 3])
        assert.equal(yield* held(spool), 0)
      }),
    ),
  )

  it.effect("continues if the spool cannot delete facts, and logs that once", () =>
    tested(
      Effect.fnUntraced(function* (spool, lines) {
        const full = {
          ...spool,
          acknowledge: () => Effect.fail(new SpoolFailed({ detail: "full" })),
        }
        const fiber = yield* start(full)
        for (const n of [1, 2, 3]) {
          yield* addAll(spool, n)
          yield* TestClock.adjust(300)
        }
        yield* Fiber.interrupt(fiber)
        yield* run(full)
        assert.deepEqual(yield* numbers, [1, 2, 3])
        assert.deepEqual(
          [...new Set(lines)],
          [
            "The spool of carrier-search.search.node-1 could not remove recorded facts and " +
              "retries: full",
          ],
        )
        assert.lengthOf(lines, 2)
      }),
    ),
  )

  it.effect("starts over with a new epoch, and continues after the first file is restored", () =>
    tested(
      Effect.fnUntraced(function* (spool, lines) {
        const other = yield* spoolMemory<SearchFact>()
        yield* addAll(spool, 1, 2, 3)
        // It cannot delete facts, so that the restored file still has recorded ones.
        yield* run({ ...spool, acknowledge: () => Effect.void })
        yield* addAll(other, 4)
        yield* run(other)
        yield* addAll(spool, 5)
        yield* run(spool)
        yield* addAll(other, 6)
        yield* run(other)
        assert.deepEqual(yield* numbers, [1, 2, 3, 4, 5, 6])
        assert.deepEqual(lines, [])
      }),
    ),
  )

  it.effect("remembers the last epochs, and accepts more than it remembers", () =>
    tested(
      Effect.fnUntraced(function* () {
        for (let n = 1; n <= epochs_max + 3; n++) {
          const spool = yield* spoolMemory<SearchFact>()
          yield* addAll(spool, n)
          yield* run(spool)
        }
        const last = (yield* commits).at(-1)?.commit
        assert.equal(last?.events.length, 1)
        // The snapshot holds the chart's context.
        const context = last?.snapshot.context as FactContext
        assert.equal(context.facts, epochs_max + 3)
        assert.lengthOf(context.epochs, epochs_max)
      }),
    ),
  )

  it.effect("splits many facts into commits of 500, and large ones into commits of 512 KB", () =>
    tested(
      Effect.fnUntraced(function* (spool) {
        const small = Array.from({ length: 1_100 }, (_, n) => n + 1)
        yield* addAll(spool, ...small)
        yield* run(spool)
        const sizes = (yield* commits).map(({ commit }) => commit.events.length)
        assert.deepEqual(sizes, [500, 500, 100])

        // The worst case in JSON: a control character takes six bytes instead of one.
        const actor = "\u0001".repeat(8_000)
        for (let n = 1; n <= 60; n++) yield* spool.add({ ...searchFact(n), actor })
        yield* run(spool)
        assert.isAbove((yield* commits).length, 3 + 5)
        for (const { commit } of yield* commits) {
          assert.isAtMost(bytesOf(commit), commit_bytes_max)
          assert.isAtMost(bytesOf(commit.snapshot), snapshot_bytes_max)
          assert.isAtMost(commit.events.length, facts_max)
        }
        assert.deepEqual(yield* numbers, [...small, ...small.slice(0, 60)])
      }),
    ),
  )

  it("takes at least one fact of any size", () => {
    const huge = "x".repeat(commit_bytes_max)
    assert.deepEqual(firstBatch([huge, "small"], 10), [huge])
    assert.deepEqual(firstBatch(["a", "b", "c"], 2), ["a", "b"])
    assert.deepEqual(firstBatch([], 10), [])
  })

  it("takes as many facts as fit when they are added one by one", () => {
    const naive = (facts: ReadonlyArray<string>, max: number) => {
      let bytes = 32 * 1024
      const end = facts.findIndex((fact, i) => {
        bytes += bytesOf(fact) + 160
        return i > 0 && (i === max || bytes > commit_bytes_max)
      })
      return end === -1 ? facts : facts.slice(0, end)
    }
    const text = fc
      .tuple(fc.constantFrom("a", "\u0001", "ü", "𝄞"), fc.integer({ min: 0, max: 30_000 }))
      .map(([letter, times]) => letter.repeat(times))
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 20 }),
        fc.integer({ min: 1, max: 20 }),
        (facts, max) => assert.deepEqual(firstBatch(facts, max), naive(facts, max)),
      ),
      { seed: 159 },
    )
  })

  it.effect("waits for an unavailable log, logs that once, and loses nothing", () =>
    tested(
      Effect.fnUntraced(function* (spool, lines) {
        const commands = yield* Commands
        let reachable = false
        const down = Commands.of({
          send: (...sent) =>
            reachable ? commands.send(...sent) : Effect.fail(new Unavailable({ detail: "down" })),
        })
        const fiber = yield* Effect.provideService(start(spool), Commands, down)
        yield* addAll(spool, 1)
        yield* TestClock.adjust("5 seconds")
        yield* addAll(spool, 2)
        yield* TestClock.adjust("5 seconds")
        assert.lengthOf(yield* events, 0)
        assert.deepEqual(lines, ["The spool of carrier-search.search.node-1 is waiting: down"])
        reachable = true
        yield* TestClock.adjust("1 seconds")
        assert.deepEqual(yield* numbers, [1, 2])
        reachable = false
        yield* addAll(spool, 3)
        yield* TestClock.adjust("1 seconds")
        assert.lengthOf(lines, 2)
        reachable = true
        yield* TestClock.adjust("1 seconds")
        assert.deepEqual(yield* numbers, [1, 2, 3])
        yield* Fiber.interrupt(fiber)
      }),
    ),
  )

  it.effect("reads its cursor again after another process recorded its facts", () =>
    tested(
      Effect.fnUntraced(function* (spool) {
        const fiber = yield* start({ ...spool, acknowledge: () => Effect.void })
        yield* addAll(spool, 1)
        yield* TestClock.adjust(300)
        yield* addAll(spool, 2)
        const { send } = yield* Commands
        const [, second] = yield* spool.scan(0, 10)
        assert(second !== undefined)
        const command = searches.record({ epoch: spool.epoch, from: 1, facts: [second] })
        const at = "2026-11-20T12:00:00.000Z"
        yield* send({ command_id: "x", actor: "x", at }, { to: searches.to, id: node_id, command })
        yield* addAll(spool, 3)
        yield* TestClock.adjust("2 seconds")
        assert.deepEqual(yield* numbers, [1, 2, 3])
        yield* Fiber.interrupt(fiber)
      }),
    ),
  )

  it.effect("waits on an unreadable fact and on a defect", () =>
    tested(
      Effect.fnUntraced(function* (spool, lines) {
        let trouble: Effect.Effect<never, SpoolFailed> | undefined = Effect.fail(
          new SpoolFailed({ detail: "unreadable" }),
        )
        const troubled: Spool<SearchFact> = {
          ...spool,
          scan: (after, max) => trouble ?? spool.scan(after, max),
        }
        const fiber = yield* start(troubled)
        yield* addAll(spool, 1)
        yield* TestClock.adjust("2 seconds")
        trouble = Effect.die(new Error("broken"))
        yield* TestClock.adjust("2 seconds")
        trouble = undefined
        yield* TestClock.adjust("1 seconds")
        assert.deepEqual(yield* numbers, [1])
        assert.deepEqual(
          lines.map((line) => line.replace(/^.* is waiting: /, "")),
          ["unreadable", "Error: broken"],
        )
        yield* Fiber.interrupt(fiber)
      }),
    ),
  )
})
