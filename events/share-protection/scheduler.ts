/** Events of the scheduler. Stream: share-protection.scheduler.main. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

export const SchedulerPaused = message("SchedulerPaused", {})
/** Ticks before `at` are skipped. */
export const SchedulerResumed = message("SchedulerResumed", { at: Instant })

export const SchedulerEvent = Schema.Union([SchedulerPaused, SchedulerResumed]).pipe(
  Schema.toTaggedUnion("type"),
)
export type SchedulerEvent = typeof SchedulerEvent.Type
