/** The scheduler as operators see it. Source: document 2 §2 Scheduling status, §3 Scheduler. */
import { Effect, Schema, Struct } from "effect"
import type { Kysely } from "kysely"
import { SchedulerEvent } from "#events/share-protection/scheduler.ts"
import { projection } from "#projections/projection.ts"
import { findRow } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import { SchedulingStatus } from "#schemas/share-protection/scheduler.ts"

const fields = {
  id: Schema.String,
  ...Struct.pick(SchedulingStatus.fields, ["paused", "paused_at"]),
}
type SchedulerRow = Schema.Struct<typeof fields>["Type"]

export interface SchedulerTables {
  readonly share_protection_scheduler: Stored<SchedulerRow>
}

const schedulers = table({ name: "share_protection_scheduler", fields })

export const scheduler = projection<SchedulerTables, SchedulerEvent>({
  part: "share-protection.scheduler",
  event: SchedulerEvent,
  create: ({ schema }) => schedulers.create(schema),
  project: ({ type }, { id, commit: { at } }) => {
    const paused = type === "SchedulerPaused"
    const now = { paused, paused_at: paused ? at : null }
    return [schedulers.ensure({ id, ...now }), schedulers.update(id, now)]
  },
})

/** It runs until it is first paused. */
const running = (id: string): SchedulerRow => ({ id, paused: false, paused_at: null })

export const findScheduler = (db: Kysely<SchedulerTables>, id = "main") =>
  Effect.map(findRow(db, schedulers, id), (row) => row ?? running(id))
