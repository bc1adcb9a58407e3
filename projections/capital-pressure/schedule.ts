/** The scheduler's jobs and their results. Source: document 3 §2 A SchedulerOut. */
import type { SchedulerStatus } from "#schemas/capital-pressure/dashboard.ts"
import { type ScheduledJob, scheduled_jobs } from "#schemas/capital-pressure/schedule.ts"
import { zoneless } from "./formatting.ts"
import type { Store } from "./store.ts"

/** `nextRunOf` returns RFC 3339 in UTC; null for every job if the scheduler does not run. */
export const schedulerOf = (
  { jobs }: Store,
  nextRunOf: (job: ScheduledJob) => string | null,
): SchedulerStatus => ({
  jobs: scheduled_jobs.map((job) => {
    const { id, label, description, schedule_repr } = job
    const row = jobs.get(id)
    return {
      id,
      label,
      description,
      schedule_repr,
      last_run_at: zoneless(row?.last_run_at ?? null),
      last_success_at: zoneless(row?.last_success_at ?? null),
      last_error_at: zoneless(row?.last_error_at ?? null),
      last_error: row?.last_error ?? null,
      next_run_at: zoneless(nextRunOf(job)),
    }
  }),
})
