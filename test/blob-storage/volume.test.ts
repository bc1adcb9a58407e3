import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Struct } from "effect"
import fc from "fast-check"
import { machine, Volume } from "#actors/blob-storage/volume.ts"
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
import { snapshot_bytes_max } from "#events/log.ts"
import { blueprint } from "#projections/blob-storage/blueprint.ts"
import { findVolume, listPolicies } from "#projections/blob-storage/volume.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import { sqlite } from "#sqlite"
import { blob, bytesOf, fact, record } from "../world/blob-storage/fact.ts"
import { given } from "../world/given.ts"
import { histories } from "../world/histories.ts"
import { temporaryFolder } from "../world/programs/nats.ts"

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
  it("records a released copy, and one that is a shard", () => {
    const shard = { index: 5, data_shards: 4, bytes: 25 }
    const none = { policy: "REPLICATION_POLICY_EC42", shard } as const
    return volume()
      .when(record(0, { ...fact(1, "stored"), ...none }, { ...fact(2, "released"), ...none }))
      .thenEvents(
        BlobStored.make({ ...blob, ...none, after: 0, cursor: 1 }),
        BlobReleased.make({ ...blob, ...none, after: 1, cursor: 2 }),
      )
  })
  // Otherwise this fact would block the journal forever.
  it("records the end of a blob of which nothing is known but its identifier", () => {
    const unknown = { size: 0, checksum: "" } as const
    const none = { policy: "REPLICATION_POLICY_NONE" } as const
    return volume(BlobStored.make({ ...blob, ...none, after: 0, cursor: 1 }))
      .when(record(1, { ...fact(2, "quarantined"), ...unknown }, fact(3, "stored")))
      .thenEvents(BlobQuarantined.make({ ...blob, ...unknown, after: 1, cursor: 2 }), stored(2))
  })
  it("records the end of a blob whose beginning was never recorded", () =>
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

describe("facts that come at once", () => {
  const kinds = ["stored", "deleted", "quarantined", "lost", "released"] as const
  const policies = ["NONE", "REPLICA3", "UNSPECIFIED"] as const
  const some = fc.record({
    kind: fc.constantFrom(...kinds),
    policy: fc.constantFrom(...policies.map((name) => `REPLICATION_POLICY_${name}` as const)),
    size: fc.integer({ min: 0, max: 200 }),
    // The volume rejects a cursor that does not increase; it accepts one that skips facts.
    step: fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0),
    shard: fc.option(fc.constant({ index: 1, data_shards: 4, bytes: 40 }), { nil: undefined }),
    labels: fc.option(fc.dictionary(fc.string(), fc.string()), { nil: undefined }),
  })
  const classes = {
    stored: BlobStored,
    deleted: BlobDeleted,
    quarantined: BlobQuarantined,
    lost: BlobLost,
    released: BlobReleased,
  }

  it("have the same effect as one at a time, and are recorded as their schemas define", () => {
    fc.assert(
      fc.property(fc.array(some, { minLength: 2, maxLength: 12 }), (found) => {
        let cursor = 0
        const facts = found.map(({ step, shard, labels, ...one }) => {
          cursor += step
          return { ...blob, ...one, cursor, ...(shard && { shard }), ...(labels && { labels }) }
        })
        const events = facts.map(({ kind, ...fields }, i) => {
          const after = facts[i - 1]?.cursor ?? 0
          if (kind === "stored") return BlobStored.make({ after, ...fields })
          return classes[kind].make({ after, ...Struct.omit(fields, ["labels"]) })
        })
        const decided = Volume.decide(Volume.initialState, record(0, ...facts))
        if (found.some(({ step }) => step === 0)) {
          assert.isTrue(Result.isFailure(decided))
          return
        }
        const result = Result.getOrThrow(decided)
        assert.equal(JSON.stringify(result), JSON.stringify(events))
        const alone = events.reduce(Volume.evolve, Volume.initialState)
        const together = Volume.after(Volume.initialState, result)
        assert.deepEqual(JSON.stringify(together), JSON.stringify(alone))
        const next = deleted(cursor)
        assert.deepEqual(
          Volume.save(Volume.evolve(together, next)),
          Volume.save(Volume.evolve(alone, next)),
        )
      }),
      { seed: 159 },
    )
  })
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
      const values = { active_nodes: 1, under_replicated: 1 }
      const shortfalls = [
        ReplicationShortfallStarted.make(values),
        ReplicationShortfallEnded.make(values),
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
