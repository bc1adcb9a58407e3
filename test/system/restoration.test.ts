import { assert, describe, it } from "@effect/vitest"
import { Restorations, restoration_id } from "#actors/system/restoration.ts"
import type { Recorded } from "#events/log.ts"
import { restoration_stream, StateRestored } from "#events/system/restoration.ts"
import { publishedOf } from "#projections/published-events.ts"
import { published } from "#projections/system/published.ts"
import { RecordRestoration } from "#schemas/system/restoration.ts"
import { given } from "../world/given.ts"

const restore = (position: number) => ({
  restore_id: `restore-${position}`,
  backup_id: "backup",
  made_at: "2026-11-22T00:00:00.000Z",
  position,
})
const record = (position: number) => RecordRestoration.make(restore(position))
const restored = (position: number) => StateRestored.make(restore(position))
const restorations = given(Restorations)

const at = (position: number): Recorded => ({
  position,
  stream: restoration_stream,
  hash: "",
  commit: {
    v: 1,
    actor: "test",
    at: "2026-11-22T00:00:00.000Z",
    events: [restored(7)],
    snapshot: { machine: 1, value: "open", context: {} },
    commands: [],
    prev: "",
  },
})

describe("the restores of the log", () => {
  it("follow one another, each with more of the log", () => {
    restorations().when(record(5)).thenEvents(restored(5))
    restorations(restored(5)).when(record(6)).thenEvents(restored(6))
  })

  it("do not go back behind one that the log has", () => {
    restorations(restored(5)).when(record(5)).thenRejected("svc.conflict")
    restorations(restored(5)).when(record(4)).thenRejected("svc.conflict")
  })

  it("give events after them other ids than those that are gone had", () => {
    const restores = [7, 9].map(restore)
    const ids = [7, 8, 9, 10].flatMap((position) =>
      publishedOf(published, at(position), restores).map(({ event }) => event.id),
    )
    assert.deepEqual(ids, ["7.0", "8.0.restore-7", "9.0.restore-7", "10.0.restore-9"])
    assert.equal(restoration_stream, `${Restorations.name}.${restoration_id}`)
  })
})
