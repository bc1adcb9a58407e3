/** The scheduler: who handles its endpoints. Source: document 2 §3 Scheduler, §4; DECISIONS. */
import { Clock, DateTime, Effect, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { parseSchedule } from "#actors/share-protection/processes/schedule.ts"
import { Scheduler } from "#actors/share-protection/scheduler.ts"
import { answer } from "#gateway/share-protection/answer.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { send } from "#gateway/share-protection/sending.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { listSchedules } from "#projections/share-protection/policy.ts"
import { findScheduler } from "#projections/share-protection/scheduler.ts"
import {
  PauseScheduler,
  ResumeScheduler,
  type SchedulingStatus,
} from "#schemas/share-protection/scheduler.ts"

/** The scheduler of all. */
const main = "main"

const instantOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** When any enabled policy asks for a backup next. */
const nextRun = Effect.gen(function* () {
  const { reader } = yield* ShareProtectionModel
  const now = yield* Clock.currentTimeMillis
  const ticks = (yield* listSchedules(reader)).map(({ schedule, timezone }) =>
    // What cannot be read any more, after an update of the zones say, asks for nothing.
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
  const shown: SchedulingStatus = { paused, paused_at, next_run: paused ? null : yield* nextRun }
  return shown
})

const tell = Effect.fnUntraced(function* (
  command: typeof PauseScheduler.Type | typeof ResumeScheduler.Type,
) {
  const position = yield* send([address(Scheduler, main, command)], [])
  return answer(yield* status, { status: 202, position })
})

const resume = Effect.flatMap(Clock.currentTimeMillis, (now) =>
  tell(ResumeScheduler.make({ at: instantOf(now) })),
)

export const schedulingHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "scheduling", (handlers) =>
    handlers.handleAll({
      get: () => Effect.map(status, (shown) => answer(shown)),
      pause: () => tell(PauseScheduler.make({})),
      resume: () => resume,
    }),
  )
