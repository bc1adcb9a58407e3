/** Handlers of the scheduler. Source: document 2 §3 Scheduler, §4; DECISIONS. */
import { Clock, DateTime, Effect, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { parseSchedule } from "#actors/share-protection/processes/schedule.ts"
import { Scheduler } from "#actors/share-protection/scheduler.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { send } from "#gateway/share-protection/commands.ts"
import { jsonResponse } from "#gateway/share-protection/responses.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { listSchedules } from "#projections/share-protection/policy.ts"
import { findScheduler } from "#projections/share-protection/scheduler.ts"
import {
  PauseScheduler,
  ResumeScheduler,
  type SchedulingStatus,
} from "#schemas/share-protection/scheduler.ts"

/** The id of the only scheduler. */
const main = "main"

const instantOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** The next time at which any enabled policy is due. */
const nextRun = Effect.gen(function* () {
  const { reader } = yield* ShareProtectionModel
  const now = yield* Clock.currentTimeMillis
  const ticks = (yield* listSchedules(reader)).map(({ schedule, timezone }) =>
    // A schedule that is no longer valid, for example after a time zone update, is never due.
    Result.match(parseSchedule(schedule, timezone), {
      onFailure: () => Infinity,
      onSuccess: ({ next }) => next(now),
    }),
  )
  const first = ticks.reduce((one, other) => Math.min(one, other), Infinity)
  return Number.isFinite(first) ? instantOf(first) : null
})

const status = Effect.gen(function* () {
  const { db } = yield* ShareProtectionModel
  const { paused, paused_at } = yield* findScheduler(db, main)
  const scheduling: SchedulingStatus = {
    paused,
    paused_at,
    next_run: paused ? null : yield* nextRun,
  }
  return scheduling
})

const sendToScheduler = Effect.fnUntraced(function* (
  command: typeof PauseScheduler.Type | typeof ResumeScheduler.Type,
) {
  const position = yield* send([address(Scheduler, main, command)], [])
  return jsonResponse(yield* status, { status: 202, position })
})

const resume = Effect.flatMap(Clock.currentTimeMillis, (now) =>
  sendToScheduler(ResumeScheduler.make({ at: instantOf(now) })),
)

export const schedulingHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "scheduling", (handlers) =>
    handlers.handleAll({
      get: () => Effect.map(status, (scheduling) => jsonResponse(scheduling)),
      pause: () => sendToScheduler(PauseScheduler.make({})),
      resume: () => resume,
    }),
  )
