/** The scheduler of policies. Source: document 2 §2 Scheduling status, §3 Scheduler. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

/** `next_run` is null while it is paused, and if no policy is enabled. */
export const SchedulingStatus = Schema.Struct({
  paused: Schema.Boolean,
  paused_at: Schema.NullOr(Instant),
  next_run: Schema.NullOr(Instant),
})
export type SchedulingStatus = typeof SchedulingStatus.Type

/** Stops the ticks from now on. Idempotent. */
export const PauseScheduler = message("PauseScheduler", {})
/** Resumes the ticks from `at`; ticks that were missed meanwhile are dropped. Idempotent. */
export const ResumeScheduler = message("ResumeScheduler", { at: Instant })

export const SchedulerCommand = Schema.Union([PauseScheduler, ResumeScheduler])
export type SchedulerCommand = typeof SchedulerCommand.Type
