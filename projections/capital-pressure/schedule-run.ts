/** Last run of each scheduled job. Source: document 3 §2 A SchedulerOut. */
import { ScheduleEvent } from "#events/capital-pressure/schedule.ts"
import { upsert } from "#projections/capital-pressure/upsert.ts"
import { projection } from "#projections/projection.ts"

export interface ScheduleTables {
  readonly capital_job: {
    readonly id: string
    /** Start of the last run. RFC 3339 in UTC, like the others. */
    readonly last_run_at: string | null
    readonly last_success_at: string | null
    readonly last_error_at: string | null
    /** Error of the run that failed at `last_error_at`, regardless of later runs. */
    readonly last_error: string | null
  }
}

const write = upsert<ScheduleTables["capital_job"]>("capital_job")

const start = write({ keys: ["id"], sets: ["last_run_at"] })
const end = write({ keys: ["id"], sets: ["last_success_at"] })
const fail = write({ keys: ["id"], sets: ["last_error_at", "last_error"] })

export const scheduleRun = projection<ScheduleTables, ScheduleEvent>({
  part: "capital-pressure.schedule",
  event: ScheduleEvent,
  create: ({ schema }) => [
    schema
      .createTable("capital_job")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("last_run_at", "text")
      .addColumn("last_success_at", "text")
      .addColumn("last_error_at", "text")
      .addColumn("last_error", "text"),
  ],
  project: (event, { id }) => [
    ScheduleEvent.match(event, {
      ScheduledRunStarted: ({ at }) => start({ id, last_run_at: at }),
      ScheduledRunEnded: ({ at }) => end({ id, last_success_at: at }),
      ScheduledRunFailed: ({ at, detail }) => fail({ id, last_error_at: at, last_error: detail }),
    }),
  ],
})
