/** The audit rows of many events at once, compared with those of each event alone. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Struct } from "effect"
import { BlobStored, ReplicationShortfallStarted } from "#events/blob-storage/volume.ts"
import type { Recorded } from "#events/log.ts"
import { writesOf } from "#projections/projection.ts"
import { openDatabase } from "#projections/read-model.ts"
import { auditedEvents } from "#projections/system/audit.ts"
import { blueprint } from "#projections/system/blueprint.ts"
import { details } from "#server/audit-details.ts"
import { sqlite } from "#sqlite"
import { blob } from "../world/blob-storage/fact.ts"
import { temporaryFolder } from "../world/programs/nats.ts"

const ns_per_minute = 60_000_000_000n

/** A commit with an event at each of `minutes`. */
const commit = (position: number, from: number, minutes: ReadonlyArray<number>): Recorded => ({
  position,
  stream: "blob-storage.volume.n1",
  hash: "",
  commit: {
    v: 1,
    actor: "node:n1",
    at: "2026-11-20T12:00:00.000Z",
    events: minutes.map((minute, i) =>
      BlobStored.make({
        ...{ ...blob, correlation_id: "", after: from + i, cursor: from + i + 1 },
        at: String(1_763_640_000_000_000_001n + BigInt(minute) * ns_per_minute),
      }),
    ),
    snapshot: { machine: 2, value: "open", context: {} },
    commands: ["c"],
    prev: "",
  },
})

/** An event without its own time has the time of its commit, in any time zone. */
const recordedAt = (position: number, at: string): Recorded => {
  const recorded = commit(position, 13, [])
  const events = [ReplicationShortfallStarted.make({ active_nodes: 1, under_replicated: 1 })]
  return { ...recorded, commit: { ...recorded.commit, at, events } }
}

const commits = [
  commit(1, 0, [0, 30, 60, 90, 30, 120, 121, 122]),
  commit(2, 8, [0]),
  commit(3, 9, [123, 124, 3000, 125]),
  recordedAt(4, "2026-11-20T12:00:00.000Z"),
  recordedAt(5, "2026-11-20T12:00:00"),
  recordedAt(6, "2026-11-20T12:00:00+02:00"),
]

/** The statements of each event, one after the other, from a naive reading of its fields. */
const naive = (recorded: Recorded) =>
  auditedEvents(details, recorded).map((event) => {
    const at_ms = DateTime.toEpochMillis(DateTime.makeUnsafe(event.at))
    return { place: event.position * 2 ** 16 + event.index, at_ms, event }
  })

const hour_ms = 3_600_000

describe("the audit's rows", () => {
  for (const slice of [1, 2, 3, 500]) {
    it.effect(`are those of each event, ${slice} of them at once`, () =>
      Effect.gen(function* () {
        const model = blueprint(details)
        const database = yield* openDatabase(model)
        const hours = new Map<number, { readonly first: number; readonly last: number }>()
        const rows: Array<unknown> = []
        for (const recorded of commits) {
          const slices = [...writesOf(model.projections, recorded, slice)]
          assert.lengthOf(slices, Math.ceil(recorded.commit.events.length / slice))
          for (const writes of slices) yield* database.apply(writes, recorded)
          for (const { place, at_ms, event } of naive(recorded)) {
            const hour = Math.floor(at_ms / hour_ms)
            hours.set(hour, { first: hours.get(hour)?.first ?? place, last: place })
            const { data, ...fields } = Struct.omit(event, ["position", "index"])
            const absent = { request_id: null, correlation_id: null, cause: null }
            rows.push({ ...absent, ...fields, place, at_ms, data: JSON.stringify(data) })
          }
        }
        const { db } = database
        const events = yield* Effect.promise(() =>
          db.selectFrom("system_audit_event").selectAll().orderBy("place").execute(),
        )
        assert.deepEqual<unknown>(events, rows)
        const kept = yield* Effect.promise(() =>
          db.selectFrom("system_audit_hour").selectAll().execute(),
        )
        assert.deepEqual(
          new Map(kept.map(({ hour, first, last }) => [hour, { first, last }])),
          hours,
        )
      }).pipe(Effect.provide(Layer.unwrap(Effect.map(temporaryFolder, sqlite))), Effect.scoped),
    )
  }

  it("show actor, time and id of a blob event", () => {
    const [event] = auditedEvents(details, commit(7, 0, [0]))
    assert.deepEqual<unknown>(event, {
      ...{ position: 7, index: 0, service: "blob-storage", aggregate: "volume", id: "n1" },
      ...{ subject: blob.id, type: "BlobStored", actor: blob.actor, request_id: blob.request_id },
      at: "2025-11-20T12:00:00.000Z",
      data: { ...blob, correlation_id: "", after: 0, cursor: 1 },
    })
  })
})
