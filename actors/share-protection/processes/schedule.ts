/**
 * A policy's schedule: a cron expression and its ticks.
 *
 * Changes of daylight saving time are handled as in Vixie cron. A skipped time fires after the gap
 * and a repeated time fires once, so that no day is without its backup. Schedules with a wildcard
 * or a step in the minute or hour are not adjusted.
 *
 * Source: document 2 §2 Policy, §8 conductor.scheduler_interval; DECISIONS, document 2, policy.
 */
import { Cron } from "croner"
import { DateTime, Option, Result } from "effect"
import type { PolicyId, ShareId } from "#schemas/share-protection/id.ts"

/** Minute, hour, day of the month, month, day of the week. */
const fields_count = 5

/** A valid schedule fires within 40 years of this time: 29 February on a given weekday. */
const never_before = new Date("2000-01-01T00:00:00.000Z")

export interface Schedule {
  /** The first tick after a time, both in epoch milliseconds; Infinity if there is none. */
  readonly next: (after: number) => number
  /** The last tick before a time; -Infinity if there is none. */
  readonly last: (before: number) => number
}

/**
 * Parses a cron expression of five fields (names, steps, `L`, `W`, `#` and @hourly to @yearly are
 * allowed) in an IANA time zone. Fails with a sentence that describes the error; an expression that
 * never fires is also an error.
 */
export const parseSchedule = (
  expression: string,
  timezone: string,
): Result.Result<Schedule, string> => {
  const text = expression.trim()
  if (!isZone(timezone))
    return Result.fail(`The time zone ${JSON.stringify(timezone)} does not exist.`)
  if (!text.startsWith("@") && text.split(/\s+/).length !== fields_count) {
    return Result.fail(
      "A schedule needs five fields: minute, hour, day, month and day of the week.",
    )
  }
  return Result.flatMap(cronOf(text, timezone), (cron) =>
    cron.nextRun(never_before) === null
      ? Result.fail("No day matches this schedule: it would never run.")
      : Result.succeed(scheduleOf(cron)),
  )
}

/** Offsets are not accepted as time zones, because they have no daylight saving time. */
export const isZone = (timezone: string) =>
  /^[a-z]/i.test(timezone) && Option.isSome(DateTime.zoneMakeNamed(timezone))

const cronOf = (text: string, timezone: string) =>
  Result.try({
    try: () =>
      new Cron(text, {
        mode: "5-part",
        paused: true,
        fixedTimeRule: "no-wildcard",
        // Four times as fast as the named zone.
        ...(timezone === "UTC" ? { utcOffset: 0 } : { timezone }),
      }),
    catch: (error) => String(error).replace(/^\w+: CronPattern: /, ""),
  })

const scheduleOf = (cron: Cron): Schedule => {
  // Many policies share a schedule and request the same tick.
  let known = { from: 0, to: 0 }
  return {
    next: (after) => {
      if (after < known.from || after >= known.to) {
        known = { from: after, to: cron.nextRun(new Date(after))?.getTime() ?? Infinity }
      }
      return known.to
    },
    last: (before) => cron.previousRuns(1, new Date(before))[0]?.getTime() ?? -Infinity,
  }
}

/** The ticks of a schedule around a moment; all times are epoch milliseconds. */
export interface Ticks {
  /** The tick that is due now, if any. */
  readonly due: number | undefined
  /** When the following tick is due; Infinity if there is none. */
  readonly next_at: number
}

/**
 * The tick that is due at `now`, considering only ticks after `since`: the latest of the last used
 * or skipped tick, the policy's definition and the scheduler's resumption. Of several missed ticks
 * only the last is due. Each is due `jitter_ms` after its time.
 */
export const ticksAt = (
  schedule: Schedule,
  { since, now, jitter_ms = 0 }: { since: number; now: number; jitter_ms?: number },
): Ticks => {
  const first = schedule.next(since)
  if (first + jitter_ms > now) return { due: undefined, next_at: first + jitter_ms }
  const second = schedule.next(first)
  if (second + jitter_ms > now) return { due: first, next_at: second + jitter_ms }
  const due = schedule.last(now - jitter_ms + 1)
  return { due, next_at: schedule.next(due) + jitter_ms }
}

/**
 * The delay of the ticks of a policy or a share in whole milliseconds below `jitter_seconds`:
 * constant for each id and evenly distributed over all ids.
 */
export const jitterOf = (id: PolicyId | ShareId, jitter_seconds: number) => {
  // 32-bit FNV-1a, because the leading bytes of a UUIDv7 are a time and not evenly distributed.
  let hash = 0x811c9dc5
  for (let i = 0; i < id.length; i++) {
    hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193)
  }
  return Math.floor(((hash >>> 0) / 2 ** 32) * jitter_seconds * 1000)
}
