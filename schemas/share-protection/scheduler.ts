/** The scheduler of policies. Source: document 2 §2 Scheduling status, §3 Scheduler. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

export const SchedulingStatus = Schema.Struct({
  paused: Schema.Boolean.annotateKey({ description: "Whether scheduled backups are paused." }),
  paused_at: Schema.NullOr(Instant).annotateKey({
    description: "Time of the pause. Null while scheduling runs.",
  }),
  next_run: Schema.NullOr(Instant).annotateKey({
    description:
      "Time of the next scheduled backup of any policy. Null while scheduling is paused, and if " +
      "no policy is enabled.",
  }),
}).annotate({
  identifier: "SchedulingStatus",
  description: "Whether the scheduler starts the backups of policies.",
})
export type SchedulingStatus = typeof SchedulingStatus.Type

/** Stops the ticks from now on. Idempotent. */
export const PauseScheduler = message("PauseScheduler", {})
/** Resumes the ticks from `at`; ticks that were missed meanwhile are dropped. Idempotent. */
export const ResumeScheduler = message("ResumeScheduler", { at: Instant })

export const SchedulerCommand = Schema.Union([PauseScheduler, ResumeScheduler])
export type SchedulerCommand = typeof SchedulerCommand.Type
