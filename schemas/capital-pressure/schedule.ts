/** The scheduled jobs. Source: document 3 §2 A SchedulerOut; market facts, 0.1. */
import { Schema } from "effect"
import { Detail } from "#schemas/capital-pressure/feed.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

export const JobId = Schema.Literals(["daily_ingest", "release_ingest"])
export type JobId = typeof JobId.Type

export interface ScheduledJob {
  readonly id: JobId
  readonly label: string
  readonly description: string
  /** A cron expression of five fields in `timezone`. */
  readonly cron: string
  readonly timezone: string
  /** The schedule in words. */
  readonly schedule_repr: string
}

const timezone = "America/New_York"

export const scheduled_jobs: ReadonlyArray<ScheduledJob> = [
  {
    id: "daily_ingest",
    label: "Daily ingest",
    timezone,
    cron: "0 17 * * 1-5",
    description: "Fetches every live metric and price, then computes the composite's new days.",
    schedule_repr: "Monday to Friday at 17:00 New York",
  },
  {
    id: "release_ingest",
    label: "Release ingest",
    timezone,
    cron: "0 18 * * 5",
    description: "Fetches the weekly, monthly and quarterly metrics after the week's releases.",
    schedule_repr: "Friday at 18:00 New York",
  },
]

/** `tick` is when the run was due. */
export const StartRun = message("StartRun", { tick: Instant, at: Instant })
export const EndRun = message("EndRun", { tick: Instant, at: Instant })
export const FailRun = message("FailRun", { tick: Instant, at: Instant, detail: Detail })

export const ScheduleCommand = Schema.Union([StartRun, EndRun, FailRun])
export type ScheduleCommand = typeof ScheduleCommand.Type
