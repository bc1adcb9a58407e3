/**
 * A policy's schedule: a cron expression, and the ticks that it asks for.
 *
 * Around a change of the clocks it is read as Vixie cron reads it. A time that does not exist is
 * made up for after the gap, and one that comes twice counts once, so that no day is without its
 * backup; a schedule with a wildcard or a step in minute or hour simply goes on.
 *
 * Source: document 2 §2 Policy, §8 conductor.scheduler_interval; DECISIONS, document 2, policy.
 */
import { Cron } from "croner"
import { DateTime, Option, Result } from "effect"
import type { PolicyId, ShareId } from "#schemas/share-protection/id.ts"

/** Minute, hour, day of the month, month, day of the week. */
const fields_count = 5

/** Whatever fires at all does so in 40 years from here: 29 February on a given weekday. */
const never_before = new Date("2000-01-01T00:00:00.000Z")

export interface Schedule {
  /** The first tick after a time, both as epoch milliseconds; Infinity when there is none. */
  readonly next: (after: number) => number
  /** The last tick before a time; -Infinity when there is none. */
  readonly last: (before: number) => number
}

/**
 * Reads a cron expression of five fields (names, steps, `L`, `W`, `#` and the names @hourly to
 * @yearly are allowed) in an IANA time zone. Fails with what is wrong with it, as a sentence; what
 * would never fire is wrong too.
 */
export const parseSchedule = (
  expression: string,
  timezone: string,
): Result.Result<Schedule, string> => {
  const text = expression.trim()
  if (!isZone(timezone)) return Result.fail(`There is no time zone ${JSON.stringify(timezone)}.`)
  if (!text.startsWith("@") && text.split(/\s+/).length !== fields_count) {
    return Result.fail("A schedule has five fields: minute, hour, day, month and day of the week.")
  }
  return Result.flatMap(cronOf(text, timezone), (cron) =>
    cron.nextRun(never_before) === null
      ? Result.fail("No day fits this schedule: it would never fire.")
      : Result.succeed(scheduleOf(cron)),
  )
}

/** Offsets are no time zones: they know of no change of the clocks. */
export const isZone = (timezone: string) =>
  /^[a-z]/i.test(timezone) && Option.isSome(DateTime.zoneMakeNamed(timezone))

const cronOf = (text: string, timezone: string) =>
  Result.try({
    try: () =>
      new Cron(text, {
        mode: "5-part",
        paused: true,
        fixedTimeRule: "no-wildcard",
        // Four times as fast as the zone of that name.
        ...(timezone === "UTC" ? { utcOffset: 0 } : { timezone }),
      }),
    catch: (error) => String(error).replace(/^\w+: CronPattern: /, ""),
  })

const scheduleOf = (cron: Cron): Schedule => {
  // Many policies share one schedule, and ask for the same tick.
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

/** What a schedule asks for at a moment; all times are epoch milliseconds. */
export interface Ticks {
  /** The tick to be taken now; undefined when none is. */
  readonly due: number | undefined
  /** When the tick after that is to be taken; Infinity when there is none. */
  readonly next_at: number
}

/**
 * The tick that is due at `now`, when only those after `since` count: the last one that was taken
 * or skipped, the policy's definition, or the scheduler's resumption, whichever is latest. Of many
 * that passed unseen only the last is due. Each is due `jitter_ms` after its time.
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
 * How long after its time a policy's or a share's turn is, in whole milliseconds below
 * `jitter_seconds`: always the same for the same id, and spread evenly over all of them.
 */
export const jitterOf = (id: PolicyId | ShareId, jitter_seconds: number) => {
  // FNV-1a of 32 bits: a UUID's leading bytes are a time, which would not spread.
  let hash = 0x811c9dc5
  for (let i = 0; i < id.length; i++) {
    hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193)
  }
  return Math.floor(((hash >>> 0) / 2 ** 32) * jitter_seconds * 1000)
}
