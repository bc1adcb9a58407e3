import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type BlobFact, BlobStore } from "#actors/blob-storage/blob-store.ts"
import { journal, recordAll } from "#actors/blob-storage/journal.ts"
import { machine, Volume } from "#actors/blob-storage/volume.ts"
import { Commands, Unavailable } from "#actors/commands.ts"
import { fitting } from "#actors/fitting.ts"
import { host } from "#actors/host.ts"
import { blobMemory } from "#adapters/blob-memory.ts"
import { logMemory } from "#adapters/log-memory.ts"
import { sqlite } from "#adapters/sqlite.ts"
import {
  BlobDeleted,
  type BlobEvent,
  BlobLost,
  BlobQuarantined,
  BlobReleased,
  BlobStored,
  ReplicationShortfallEnded,
  ReplicationShortfallStarted,
} from "#events/blob-storage/volume.ts"
import { commit_bytes_max, Log, snapshot_bytes_max } from "#events/log.ts"
import { blueprint } from "#projections/blob-storage/blueprint.ts"
import { findVolume, listPolicies } from "#projections/blob-storage/volume.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import { facts_max, RecordFacts, type VolumeFact } from "#schemas/blob-storage/volume.ts"
import { given } from "../given.ts"
import { histories } from "../histories.ts"
import { temporaryFolder } from "../nats.ts"

const blob = {
  id: BlobId.make("00112233445566778899aabbccddeeff"),
  size: 100,
  checksum: "c2hhMjU2",
  policy: "REPLICATION_POLICY_REPLICA3",
  at: "1763640000000000001",
  actor: "somebody",
  request_id: "request-1",
  correlation_id: "correlation-1",
} as const

const fact = (cursor: number, kind: VolumeFact["kind"]): VolumeFact => ({ ...blob, cursor, kind })
const record = (from: number, ...facts: ReadonlyArray<VolumeFact>) =>
  RecordFacts.make({ from, to: facts.at(-1)?.cursor ?? from, facts })
const stored = (after: number, cursor = after + 1) => BlobStored.make({ ...blob, after, cursor })
const deleted = (after: number, cursor = after + 1) => BlobDeleted.make({ ...blob, after, cursor })

const volume = given(Volume)

describe("a volume", () => {
  it("records a fact", () =>
    volume()
      .when(record(0, fact(1, "stored")))
      .thenEvents(stored(0)))
  it("records facts in order, each after the one before it", () =>
    volume(stored(0))
      .when(
        record(1, fact(2, "deleted"), fact(3, "stored"), fact(4, "quarantined"), fact(6, "stored")),
      )
      .thenEvents(
        deleted(1),
        stored(2),
        BlobQuarantined.make({ ...blob, after: 3, cursor: 4 }),
        stored(4, 6),
      ))
  it("records a lost copy", () =>
    volume(stored(0))
      .when(record(1, fact(2, "lost")))
      .thenEvents(BlobLost.make({ ...blob, after: 1, cursor: 2 })))
  it("records labels with what was stored", () =>
    volume()
      .when(record(0, { ...fact(1, "stored"), labels: { model: "m" } }))
      .thenEvents(BlobStored.make({ ...blob, after: 0, cursor: 1, labels: { model: "m" } })))
  it("records no fact twice", () =>
    volume(stored(0))
      .when(record(0, fact(1, "stored")))
      .thenRejected("FAILED_PRECONDITION"))
  it("records no fact when one before it is missing", () =>
    volume(stored(0))
      .when(record(2, fact(3, "stored")))
      .thenRejected("FAILED_PRECONDITION"))
  it("records no facts that run backwards", () =>
    volume()
      .when(record(0, fact(2, "stored"), fact(1, "stored")))
      .thenRejected("FAILED_PRECONDITION"))
  it("records a copy that was let go, and one that is a shard", () => {
    const shard = { index: 5, data_shards: 4, bytes: 25 }
    const none = { policy: "REPLICATION_POLICY_EC42", shard } as const
    return volume()
      .when(record(0, { ...fact(1, "stored"), ...none }, { ...fact(2, "released"), ...none }))
      .thenEvents(
        BlobStored.make({ ...blob, ...none, after: 0, cursor: 1 }),
        BlobReleased.make({ ...blob, ...none, after: 1, cursor: 2 }),
      )
  })
  // Else the journal would wait for ever behind it.
  it("records the end of a blob of which nothing is known but its identifier", () => {
    const unknown = { size: 0, checksum: "" } as const
    const none = { policy: "REPLICATION_POLICY_NONE" } as const
    return volume(BlobStored.make({ ...blob, ...none, after: 0, cursor: 1 }))
      .when(record(1, { ...fact(2, "quarantined"), ...unknown }, fact(3, "stored")))
      .thenEvents(BlobQuarantined.make({ ...blob, ...unknown, after: 1, cursor: 2 }), stored(2))
  })
  it("records the end of a blob whose beginning was never told", () =>
    volume()
      .when(record(0, fact(1, "deleted")))
      .thenEvents(deleted(0)))
  it("counts the bytes of a shard, and never below zero", () => {
    const shard = { index: 0, data_shards: 4, bytes: 25 }
    const shards = [
      BlobStored.make({ ...blob, shard, after: 0, cursor: 1 }),
      BlobStored.make({ ...blob, shard, after: 1, cursor: 2 }),
      BlobReleased.make({ ...blob, shard, after: 2, cursor: 3 }),
    ]
    const counts = (history: ReadonlyArray<BlobEvent>) => {
      const { blobs, bytes, policies } = history.reduce(Volume.evolve, Volume.initialState).context
      return { blobs, bytes, policies }
    }
    const one = { blobs: 1, bytes: 25, policies: { REPLICATION_POLICY_REPLICA3: 1 } }
    assert.deepEqual(counts(shards), one)
    const others = [deleted(3), deleted(4)]
    assert.deepEqual(counts([...shards, ...others]), { blobs: 0, bytes: 0, policies: {} })
  })
  it("has nothing to record without facts", () => volume(stored(0)).when(record(1)).thenEvents())
})

const app = Layer.mergeAll(host, blobMemory({ capacity_bytes: 2 ** 30 })).pipe(
  Layer.provideMerge(logMemory),
)

const node = "node-1"
const origin = { actor: "somebody", request_id: "r", correlation_id: "c" }

const put = Effect.fnUntraced(function* (text: string, labels: Record<string, string> = {}) {
  const store = yield* BlobStore
  const bytes = Stream.make(new TextEncoder().encode(text))
  const policy = "REPLICATION_POLICY_REPLICA3"
  return (yield* store.put({ labels, policy, origin }, bytes)).id
})

const commits = Effect.gen(function* () {
  const log = yield* Log
  return yield* Stream.runCollect(log.read(`blob-storage.volume.${node}`))
})
const events = Effect.map(commits, (commits) =>
  // Only a volume's events are in its stream, and nobody tells of a shortfall here.
  commits.flatMap(({ commit }) => commit.events as ReadonlyArray<BlobEvent>),
)

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

describe("the journal", () => {
  it.effect("brings what the store did into the log, once and in order", () =>
    Effect.gen(function* () {
      const store = yield* BlobStore
      const first = yield* put("one", { kind: "text" })
      yield* put("two")
      assert.equal(yield* recordAll(node), 2)
      yield* put("one")
      yield* store.delete(first, { ...origin, actor: "another" })
      assert.equal(yield* recordAll(node), 3)
      assert.equal(yield* recordAll(node), 3)
      const told = (yield* events).map((event) => [event.type, event.after, event.actor])
      assert.deepEqual(told, [
        ["BlobStored", 0, "somebody"],
        ["BlobStored", 1, "somebody"],
        ["BlobDeleted", 2, "another"],
      ])
      const [stored] = yield* events
      assert.deepEqual(stored?.type === "BlobStored" && stored.labels, { kind: "text" })
      assert.equal(stored?.request_id, "r")
      assert.deepEqual(yield* store.scan(0, 10), [])
    }).pipe(Effect.provide(app)),
  )

  it.effect("acknowledges at its start what was recorded before it was killed", () =>
    Effect.gen(function* () {
      const store = yield* BlobStore
      yield* put("one")
      const facts = yield* store.scan(0, 10)
      const deaf = BlobStore.of({ ...store, acknowledge: () => Effect.void })
      yield* Effect.provideService(recordAll(node), BlobStore, deaf)
      assert.deepEqual(yield* store.scan(0, 10), facts)
      yield* recordAll(node)
      assert.deepEqual(yield* store.scan(0, 10), [])
      assert.lengthOf(yield* events, 1)
    }).pipe(Effect.provide(app)),
  )

  it.effect("refuses the journal of another store, and leaves it its facts", () =>
    Effect.gen(function* () {
      for (const text of ["one", "two", "three"]) yield* put(text)
      yield* recordAll(node)
      const other = yield* Layer.build(Layer.fresh(blobMemory({ capacity_bytes: 1000 })))
      const onOther = Effect.provideContext(
        Effect.gen(function* () {
          yield* put("four")
          const error = yield* Effect.flip(recordAll(node))
          assert.equal(error._tag, "ForeignJournal")
          assert.lengthOf(yield* (yield* BlobStore).scan(0, 10), 1)
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
        ...{ cursor: 1100, last: { id: last?.id, at: last?.at } },
        ...{ blobs: 1100, bytes: (yield* (yield* BlobStore).usage).used_bytes },
        ...{ policies: { REPLICATION_POLICY_REPLICA3: 1100 }, is_short: false },
      })
    }).pipe(Effect.provide(app)),
  )

  it.effect("splits large facts into commits of 512 KB", () =>
    Effect.gen(function* () {
      // What JSON makes longest: a control character is one byte, and six in JSON.
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
    assert.deepEqual(fitting([huge, fact(2, "stored")], facts_max), [huge])
    assert.deepEqual(fitting([], facts_max), [])
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

  /** The journal while each of its commits finds another blob put, `puts` times. */
  const underLoad = (puts: number) =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const store = yield* BlobStore
      let sent = 0
      const busy = Commands.of({
        send: (...asked) =>
          Effect.gen(function* () {
            sent += 1
            const more = Effect.provideService(put(`under load ${sent}`), BlobStore, store)
            if (sent <= puts) yield* Effect.orDie(more)
            return yield* commands.send(...asked)
          }),
      })
      const loaded = Effect.provideService(journal(node), Commands, busy)
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

  it.effect("pauses for no one where the log is a minute behind", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("10 minutes")
      const { loaded, sent } = yield* underLoad(6)
      const store = yield* BlobStore
      const minutes_ago = (fact: BlobFact) => ({ ...fact, at: fact.at - 120_000_000_000n })
      const late = BlobStore.of({
        ...store,
        scan: (...asked) => Effect.map(store.scan(...asked), (facts) => facts.map(minutes_ago)),
      })
      const fiber = yield* Effect.forkChild(Effect.provideService(loaded, BlobStore, late))
      yield* TestClock.adjust(0)
      yield* put("the first")
      yield* TestClock.adjust("250 millis")
      assert.strictEqual(sent(), 7)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(app)),
  )

  it.effect("refuses a second writer's facts, whatever their order", () =>
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

const none_yet = (node_id: string) => ({ node_id, cursor: 0, blobs: 0, bytes: 0 })

describe("the volume's read model", () => {
  it.effect("agrees with the chart after each short history", () =>
    Effect.gen(function* () {
      const database = yield* openDatabase(blueprint)
      const none = { policy: "REPLICATION_POLICY_NONE" } as const
      const unspecified = { policy: "REPLICATION_POLICY_UNSPECIFIED" } as const
      const steps = [0, 1, 2, 3, 4].flatMap((after) => [
        ...[stored(after), deleted(after), stored(after, after + 2)],
        BlobStored.make({ ...blob, ...none, after, cursor: after + 1 }),
        BlobStored.make({ ...blob, ...unspecified, after, cursor: after + 1 }),
        BlobLost.make({ ...blob, ...none, after, cursor: after + 1, size: 60 }),
        BlobQuarantined.make({ ...blob, after, cursor: after + 1, size: 0 }),
        BlobReleased.make({
          ...{ ...blob, ...none, after, cursor: after + 1 },
          shard: { index: 1, data_shards: 4, bytes: 40 },
        }),
      ])
      const told = { active_nodes: 1, under_replicated: 1 }
      const shortfalls = [
        ReplicationShortfallStarted.make(told),
        ReplicationShortfallEnded.make(told),
      ]
      let walked = 0
      for (const { state, history } of histories(machine, [...steps, ...shortfalls], 5)) {
        const id = `v${++walked}`
        const snapshot = Volume.save(history.reduce(Volume.evolve, Volume.initialState))
        const origin = { v: 1, actor: "test", at: "2026-11-20T12:00:00.000Z" } as const
        const commit = { ...origin, events: history, snapshot, commands: ["c"], prev: "" }
        const recorded = { position: walked, stream: `blob-storage.volume.${id}`, hash: "", commit }
        Effect.runSync(project(database, blueprint, [recorded]))
        const row = yield* findVolume(database.db, id)
        const { policies, cursor, blobs, bytes } = state.context
        const counted = yield* listPolicies(database.db, [id])
        assert.deepEqual(
          Object.fromEntries(counted.map(({ policy, blobs }) => [policy, blobs])),
          policies,
        )
        assert.deepEqual(row ?? none_yet(id), { node_id: id, cursor, blobs, bytes })
        const restored = Volume.restore(JSON.parse(JSON.stringify(snapshot)))
        assert.deepEqual(restored?.context, state.context)
        assert.isAtMost(bytesOf(snapshot), snapshot_bytes_max)
        if (walked === 2000) break
      }
      assert.isAbove(walked, 100)
    }).pipe(Effect.provide(Layer.unwrap(Effect.map(temporaryFolder, sqlite))), Effect.scoped),
  )
})
