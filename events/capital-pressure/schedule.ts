/** Events of a scheduled job. Stream: capital-pressure.schedule.<job id>. */
import { Schema, Struct } from "effect"
import { EndRun, FailRun, StartRun } from "#schemas/capital-pressure/schedule.ts"
import { message } from "#schemas/message.ts"

export const ScheduledRunStarted = message(
  "ScheduledRunStarted",
  Struct.omit(StartRun.fields, ["type"]),
)
export const ScheduledRunEnded = message("ScheduledRunEnded", Struct.omit(EndRun.fields, ["type"]))
/** It reported a failure, or never reported again. */
export const ScheduledRunFailed = message(
  "ScheduledRunFailed",
  Struct.omit(FailRun.fields, ["type"]),
)

export const ScheduleEvent = Schema.Union([
  ScheduledRunStarted,
  ScheduledRunEnded,
  ScheduledRunFailed,
]).pipe(Schema.toTaggedUnion("type"))
export type ScheduleEvent = typeof ScheduleEvent.Type
