/** `almanac backfill-composite`: computes the composite's history. Source: document 3 §1 A. */

import { Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { summaries } from "#cli/client/summaries.ts"
import { type BackfillReport, runBackfill, today } from "#cli/dashboard/composite-run.ts"
import { rewordLogFailures, withInterruptExitCode } from "#cli/dashboard/ingest-outcome.ts"
import { capitalSession } from "#cli/dashboard/session.ts"
import { progressTo } from "#cli/progress.ts"
import { settings } from "#cli/root.ts"
import { CalendarDate, dateOf, dayOf, isBusinessDay } from "#schemas/capital-pressure/day.ts"

/** No data to compute from: exit code 1. */
class NothingComputed extends Schema.TaggedError<NothingComputed>()("NothingComputed", {
  message: Schema.String,
}) {}

/** `5219 days from 2006-11-22 to 2026-11-20, 12 changed`, and the number of withdrawn days. */
export const backfillLine = ({ days, changed, withdrawn, first, last }: BackfillReport) =>
  [
    days === 0 ? "no day has a composite" : `${days} days from ${first} to ${last}`,
    `${changed} changed`,
    ...(withdrawn === 0 ? [] : [`${withdrawn} withdrawn`]),
  ].join(", ")

/** An error if no composite can exist from this date on; otherwise undefined. */
export const sinceTooLate = (since: string | undefined, now: number) => {
  const last = [now, now - 1, now - 2].find(isBusinessDay)
  return since === undefined || last === undefined || dayOf(since) <= last
    ? undefined
    : `--since ${since} is after ${dateOf(last)}, the last day that can have a composite`
}

/** History that an indicator needs; growth starts a year after its series. Market facts, A2.2. */
const history_needed =
  "a metric needs 3 years of values, hy_spread 1 year, year-on-year growth 4 years"

/** Why no day has a composite. */
export const noCompositeReason = (since: string | undefined) => {
  const what =
    since === undefined
      ? "no day has a composite yet: ingest metrics first"
      : `no day since ${since} has a composite: ingest newer values or more history`
  return `${what}; ${history_needed}`
}

export const backfill = Command.make(
  "backfill-composite",
  {
    since: Flag.String("since").pipe(
      Flag.withDescription("First day to compute, YYYY-MM-DD (default: 20 years ago)"),
      Flag.withSchema(CalendarDate),
      Flag.optional,
    ),
    vintage: Flag.Literals("vintage", ["latest", "first"]).pipe(
      Flag.withDescription(
        "Use the latest values, or the first published ones, before any revision",
      ),
      Flag.withDefault("latest" as const),
    ),
  },
  Effect.fn(function* ({ since: given, vintage }) {
    const since = Option.getOrUndefined(given)
    const late = sinceTooLate(since, yield* today)
    if (late !== undefined) return yield* new NothingComputed({ message: late })
    const configured = yield* settings
    const { at, end } = progressTo(0)
    const report = yield* runBackfill({
      since: since === undefined ? undefined : dayOf(since),
      vintage,
      onProgress: (done, total) => at("metrics", done, total),
    }).pipe(Effect.provide(capitalSession(configured)), rewordLogFailures, Effect.ensuring(end))
    const is_nothing = report.days + report.withdrawn === 0
    if (is_nothing) return yield* new NothingComputed({ message: noCompositeReason(since) })
    yield* Console.log(backfillLine(report))
  }, withInterruptExitCode),
).pipe(
  Command.withDescription(summaries["backfill-composite"]),
  Command.withExamples([
    {
      command: "almanac backfill-composite",
      description: "Compute the last 20 years, after an ingest",
    },
    {
      command: "almanac backfill-composite --vintage first",
      description: "As it would have been computed at the time, without later revisions",
    },
  ]),
)
