import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { journal, recordAll } from "#actors/blob-storage/journal.ts"
import { type BlobEngine, type BlobFact, Blobs } from "#actors/blob-storage/ports/engine.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { Commands, Unavailable } from "#actors/commands.ts"
import { firstBatch } from "#actors/first-batch.ts"
import { host } from "#actors/host.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import type { BlobEvent } from "#events/blob-storage/volume.ts"
import { commit_bytes_max, Log, snapshot_bytes_max } from "#events/log.ts"
import { logMemory } from "#journal"
import { facts_max } from "#schemas/blob-storage/volume.ts"
import { put as putInto } from "../contract/blob-storage/engine-bytes.ts"
import { bytesOf, fact, record } from "../world/blob-storage/fact.ts"

const blobMemory = Layer.sync(Blobs, () => memoryEngine())
const app = Layer.mergeAll(host, blobMemory).pipe(Layer.provideMerge(logMemory))

const node = "node-1"
const origin = { actor: "somebody", request_id: "r", correlation_id: "c" }

const put = Effect.fnUntraced(function* (text: string, labels: Record<string, string> = {}) {
  const blobs = yield* Blobs
  const at = yield* Clock.currentTimeNanos
  return yield* Effect.promise(async () => {
    const { id } = await putInto(blobs, new TextEncoder().encode(text), { labels, origin, at })
    return id
  })
})

/** All facts in the engine's journal, up to ten. */
const scan = Effect.flatMap(Blobs, (blobs) => Effect.promise(() => blobs.scan(0, 10)))

const commits = Effect.gen(function* () {
  const log = yield* Log
  return yield* Stream.runCollect(log.read(`blob-storage.volume.${node}`))
})
const events = Effect.map(commits, (commits) =>
  // A volume's stream holds only its events, and this test records no shortfall.
  commits.flatMap(({ commit }) => commit.events as ReadonlyArray<BlobEvent>),
)

describe("the journal", () => {
  it.effect("brings what the store did into the log, once and in order", () =>
    Effect.gen(function* () {
      const blobs = yield* Blobs
      const first = yield* put("one", { kind: "text" })
      yield* put("two")
      assert.equal(yield* recordAll(node), 2)
      yield* put("one")
      yield* Effect.promise(() => blobs.delete(first, { ...origin, actor: "another" }, 1n))
      assert.equal(yield* recordAll(node), 3)
      assert.equal(yield* recordAll(node), 3)
      const recorded = (yield* events).map((event) => [event.type, event.after, event.actor])
      assert.deepEqual(recorded, [
        ["BlobStored", 0, "somebody"],
        ["BlobStored", 1, "somebody"],
        ["BlobDeleted", 2, "another"],
      ])
      const [stored] = yield* events
      assert.deepEqual(stored?.type === "BlobStored" && stored.labels, { kind: "text" })
      assert.equal(stored?.request_id, "r")
      assert.deepEqual(yield* scan, [])
    }).pipe(Effect.provide(app)),
  )

  it.effect("acknowledges at its start what was recorded before it was killed", () =>
    Effect.gen(function* () {
      const blobs = yield* Blobs
      yield* put("one")
      const facts = yield* scan
      const deaf = { ...blobs, acknowledge: async () => undefined }
      yield* Effect.provideService(recordAll(node), Blobs, deaf)
      assert.deepEqual(yield* scan, facts)
      yield* recordAll(node)
      assert.deepEqual(yield* scan, [])
      assert.lengthOf(yield* events, 1)
    }).pipe(Effect.provide(app)),
  )

  it.effect("refuses the journal of another store, and leaves it its facts", () =>
    Effect.gen(function* () {
      for (const text of ["one", "two", "three"]) yield* put(text)
      yield* recordAll(node)
      const other = yield* Layer.build(Layer.fresh(blobMemory))
      const onOther = Effect.provideContext(
        Effect.gen(function* () {
          yield* put("four")
          const error = yield* Effect.flip(recordAll(node))
          assert.equal(error._tag, "ForeignJournal")
          assert.lengthOf(yield* scan, 1)
        }),
        other,
      )
      yield* onOther
      assert.lengthOf(yield* events, 3)
    }).pipe(Effect.scoped, Effect.provide(app)),
  )

  it.effect("splits many facts into commits of 500", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 1100; i++) yield* put(`blob ${i}`)
      assert.equal(yield* recordAll(node), 1100)
      const all = yield* commits
      assert.deepEqual(
        all.map(({ commit }) => commit.events.length),
        [500, 500, 100],
      )
      const last = (yield* events).at(-1)
      assert.deepEqual(all.at(-1)?.commit.snapshot.context, {
        cursor: 1100,
        last: { id: last?.id, at: last?.at },
        blobs: 1100,
        bytes: (yield* Effect.promise((yield* Blobs).usage)).payload_bytes,
        policies: { REPLICATION_POLICY_REPLICA3: 1100 },
        is_short: false,
      })
    }).pipe(Effect.provide(app)),
  )

  it.effect("splits large facts into commits of 512 KB", () =>
    Effect.gen(function* () {
      // The longest JSON encoding: a control character is one byte, but six in JSON.
      const labels = { l: "\u0001".repeat(16 * 1024 - 1) }
      for (let i = 0; i < 12; i++) yield* put(`blob ${i}`, labels)
      yield* recordAll(node)
      const all = yield* commits
      assert.equal((yield* events).length, 12)
      assert.isAbove(all.length, 2)
      for (const { commit } of all) {
        assert.isAtMost(bytesOf(commit), commit_bytes_max)
        assert.isAtMost(bytesOf(commit.snapshot), snapshot_bytes_max)
        assert.isAtMost(commit.events.length, facts_max)
      }
    }).pipe(Effect.provide(app)),
  )

  it("takes at least one fact, however large", () => {
    const huge = { ...fact(1, "stored"), checksum: "x".repeat(commit_bytes_max) }
    assert.deepEqual(firstBatch([huge, fact(2, "stored")], facts_max), [huge])
    assert.deepEqual(firstBatch([], facts_max), [])
  })

  for (const [what, refusal] of [
    ["a log out of reach", Effect.fail(new Unavailable({ detail: "down" }))],
    ["one that breaks", Effect.die(new Error("broken"))],
  ] as const) {
    it.effect(`waits for ${what}, and then loses nothing`, () => waits(refusal))
  }

  const waits = (refusal: Effect.Effect<never, Unavailable>) =>
    Effect.gen(function* () {
      const commands = yield* Commands
      let reachable = false
      const down = Commands.of({
        send: (...sent) => (reachable ? commands.send(...sent) : refusal),
      })
      const fiber = yield* Effect.forkChild(Effect.provideService(journal(node), Commands, down))
      yield* put("one")
      yield* TestClock.adjust("5 seconds")
      assert.lengthOf(yield* events, 0)
      reachable = true
      yield* TestClock.adjust("1 seconds")
      assert.lengthOf(yield* events, 1)
      yield* put("two")
      yield* TestClock.adjust("1 seconds")
      assert.lengthOf(yield* events, 2)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app))

  /** A journal for which another blob is put during each of its first `puts` commits. */
  const underLoad = (puts: number, isFull?: () => boolean) =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const blobs = yield* Blobs
      let sent = 0
      const busy = Commands.of({
        send: (...args) =>
          Effect.gen(function* () {
            sent += 1
            const more = Effect.provideService(put(`under load ${sent}`), Blobs, blobs)
            if (sent <= puts) yield* more
            return yield* commands.send(...args)
          }),
      })
      const loaded = Effect.provideService(journal(node, isFull), Commands, busy)
      return { loaded, sent: () => sent }
    })

  it.effect("pauses after each commit while blobs are put, and not when they have ended", () =>
    Effect.gen(function* () {
      const { loaded, sent } = yield* underLoad(3)
      const fiber = yield* Effect.forkChild(loaded)
      yield* TestClock.adjust(0)
      yield* put("the first")
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 1)
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 2)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(sent(), 4)
      assert.lengthOf(yield* events, 4)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app)),
  )

  it.effect("pauses longer while little comes, and is soon there for the first after a rest", () =>
    Effect.gen(function* () {
      const { loaded, sent } = yield* underLoad(7)
      const fiber = yield* Effect.forkChild(loaded)
      yield* TestClock.adjust(0)
      yield* put("the first")
      // Commits follow after 250 ms, after 500 ms, after 1 s, and then once a second.
      for (const [after, commits] of [
        [1000, 3],
        [999, 3],
        [1, 4],
        [999, 4],
        [1, 5],
      ] as const) {
        yield* TestClock.adjust(after)
        assert.strictEqual(sent(), commits)
      }
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(sent(), 8)
      yield* put("another")
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 9)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app)),
  )

  /** A store whose journal never fits into one commit, unless it is empty. */
  const overfull = Effect.map(
    Blobs,
    (blobs): BlobEngine => ({
      ...blobs,
      scan: async (after, limit) => {
        // Too long for any commit, so it is always left for the next one.
        const endless = { actor: "x".repeat(commit_bytes_max) }
        const facts = await blobs.scan(after, limit)
        return facts.flatMap((fact) => [fact, { ...fact, ...endless }])
      },
    }),
  )

  it.effect("pauses no longer where more waits than a commit holds", () =>
    Effect.gen(function* () {
      const { loaded, sent } = yield* underLoad(4)
      const full = yield* overfull
      const fiber = yield* Effect.forkChild(Effect.provideService(loaded, Blobs, full))
      yield* TestClock.adjust(0)
      yield* put("the first")
      yield* TestClock.adjust("1250 millis")
      assert.strictEqual(sent(), 5)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app)),
  )

  it.effect("pauses a second for each commit while others need all of the thread", () =>
    Effect.gen(function* () {
      let is_full = true
      const { loaded, sent } = yield* underLoad(9, () => is_full)
      const full = yield* overfull
      const fiber = yield* Effect.forkChild(Effect.provideService(loaded, Blobs, full))
      yield* TestClock.adjust(0)
      yield* put("the first")
      // An idle journal is polled at the usual interval.
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 1)
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(sent(), 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(sent(), 2)
      is_full = false
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(sent(), 3)
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 4)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app)),
  )

  it.effect("pauses for no one where the log is a minute behind", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("10 minutes")
      const { loaded, sent } = yield* underLoad(6)
      const blobs = yield* Blobs
      const minutes_ago = (fact: BlobFact) => ({ ...fact, at: fact.at - 120_000_000_000n })
      const late: BlobEngine = {
        ...blobs,
        scan: async (...args) => (await blobs.scan(...args)).map(minutes_ago),
      }
      const fiber = yield* Effect.forkChild(Effect.provideService(loaded, Blobs, late))
      yield* TestClock.adjust(0)
      yield* put("the first")
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 7)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app)),
  )

  it.effect("rejects a second writer's facts, in any order", () =>
    Effect.gen(function* () {
      yield* put("one")
      yield* recordAll(node)
      const send = (yield* Commands).send
      const at = "2026-11-20T12:00:00.000Z"
      const stale = { to: Volume, id: node, command: record(0, fact(1, "stored")) }
      const sent = yield* Effect.result(send({ command_id: "x", actor: "x", at }, stale))
      assert.isTrue(Result.isFailure(sent))
    }).pipe(Effect.provide(app)),
  )
})
