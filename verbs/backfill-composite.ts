/** `almanac backfill-composite`: the composite's history. Source: document 3 §1 A. */
import { Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { CalendarDate, dayOf } from "#schemas/capital-pressure/day.ts"
import { capitalSession } from "#verbs/capital-session.ts"
import { type BackfillReport, runBackfill } from "#verbs/composite-run.ts"
import { outOfReach, stoppedEarly } from "#verbs/ingest-outcome.ts"
import { progressTo } from "#verbs/progress.ts"
import { settings } from "#verbs/root.ts"

/** There is nothing to compute with: exit code 1. */
class NothingComputed extends Schema.TaggedError<NothingComputed>()("NothingComputed", {
  message: Schema.String,
}) {}

/** `5219 days from 2006-11-22 to 2026-11-20, 12 changed` */
export const backfillLine = ({ days, changed, first, last }: BackfillReport) =>
  `${days} days from ${first} to ${last}, ${changed} changed`

export const backfill = Command.make(
  "backfill-composite",
  {
    since: Flag.String("since").pipe(
      Flag.withDescription("First day to compute, YYYY-MM-DD; 20 years back if absent"),
      Flag.withSchema(CalendarDate),
      Flag.optional,
    ),
    vintage: Flag.Literals("vintage", ["latest", "first"]).pipe(
      Flag.withDescription("first: with each value as it was told first, before any revision"),
      Flag.withDefault("latest" as const),
    ),
  },
  Effect.fn(function* ({ since, vintage }) {
    const configured = yield* settings
    const { at, end } = progressTo(0)
    const report = yield* runBackfill({
      since: Option.getOrUndefined(Option.map(since, dayOf)),
      vintage,
      onProgress: (done, total) => at("metrics", done, total),
    }).pipe(Effect.provide(capitalSession(configured)), outOfReach, Effect.ensuring(end))
    if (report.days === 0) {
      const message = "no day has a composite yet: ingest metrics first, and a year of each or more"
      return yield* new NothingComputed({ message })
    }
    yield* Console.log(backfillLine(report))
  }, stoppedEarly),
).pipe(
  Command.withDescription("Compute the composite of each business day, and store what changed"),
  Command.withExamples([
    { command: "almanac backfill-composite", description: "The last 20 years, after an ingest" },
    {
      command: "almanac backfill-composite --vintage first",
      description: "What would have been seen then, without later revisions",
    },
  ]),
)
