/** Feeds: the results of each metric's ingests. Source: document 3 §2 A SourcesOut. */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

const detail_chars_max = 500
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Why an ingest failed, for people. */
export const Detail = Schema.String.check(Schema.isMaxLength(detail_chars_max))

const cut = "..."

/** Truncates a text to a detail's length. */
export const detailOf = (text: string): string =>
  text.length <= detail_chars_max ? text : text.slice(0, detail_chars_max - cut.length) + cut

/** An ingest succeeded; `observed` and `revised` count new and changed values. */
export const RecordIngest = message("RecordIngest", {
  at: Instant,
  observed: Count,
  revised: Count,
  /** The newest date in the response; null if it had none. */
  newest: Schema.NullOr(CalendarDate),
  demo: Schema.Boolean,
})
/** The publisher was unreachable or its response unreadable: stored data stays. */
export const RecordFeedFailure = message("RecordFeedFailure", { at: Instant, detail: Detail })

export const FeedCommand = Schema.Union([RecordIngest, RecordFeedFailure])
export type FeedCommand = typeof FeedCommand.Type

/** Ids of feeds other than those of metrics. */
export const other_feeds = ["prices", "watchlist"] as const
