import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { schedulerOf } from "#projections/capital-pressure/schedule.ts"
import { SchedulerStatus } from "#schemas/capital-pressure/dashboard.ts"
import { scheduled_jobs } from "#schemas/capital-pressure/schedule.ts"
import { storeOf } from "../world/capital-pressure/store.ts"

const ran = {
  last_run_at: "2026-11-20T22:00:00.000Z",
  last_success_at: "2026-11-19T22:03:00.000Z",
  last_error_at: "2026-11-20T22:01:00.000Z",
  last_error: "It ended with exit code 1.",
}

describe("the scheduler", () => {
  it("lists its jobs when none ever ran and none will", () => {
    const { jobs } = schedulerOf(storeOf(), () => null)
    expect(jobs.map(({ id }) => id)).toEqual(["daily_ingest", "release_ingest"])
    for (const [index, job] of jobs.entries()) {
      const { label, description, schedule_repr } = scheduled_jobs[index] ?? job
      expect(job).toEqual({
        id: job.id,
        label,
        description,
        schedule_repr,
        last_run_at: null,
        last_success_at: null,
        last_error_at: null,
        last_error: null,
        next_run_at: null,
      })
    }
  })

  it("reports each run's outcome and the next run, in times without a zone", () => {
    const jobs = new Map([["release_ingest", ran]] as const)
    const found = schedulerOf(storeOf({ jobs }), ({ cron }) =>
      cron === "0 18 * * 5" ? "2026-11-27T23:00:00.000Z" : null,
    )
    expect(found.jobs[0]).toMatchObject({
      id: "daily_ingest",
      last_run_at: null,
      next_run_at: null,
    })
    expect(found.jobs[1]).toMatchObject({
      id: "release_ingest",
      last_run_at: "2026-11-20T22:00:00.000",
      last_success_at: "2026-11-19T22:03:00.000",
      last_error_at: "2026-11-20T22:01:00.000",
      last_error: "It ended with exit code 1.",
      next_run_at: "2026-11-27T23:00:00.000",
    })
    expect(Schema.decodeUnknownSync(SchedulerStatus)(found)).toEqual(found)
  })
})
