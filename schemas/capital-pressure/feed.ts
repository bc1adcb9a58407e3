/** Feeds: how the ingest of each metric went. Source: document 3 §2 A SourcesOut. */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

const detail_chars_max = 500
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Why it failed, for a person. */
export const Detail = Schema.String.check(Schema.isMaxLength(detail_chars_max))

const cut = "..."

/** As much of a text as a detail holds. */
export const detailOf = (text: string): string =>
  text.length <= detail_chars_max ? text : text.slice(0, detail_chars_max - cut.length) + cut

/** It was asked and answered; `observed` and `revised` count what was not known. */
export const RecordIngest = message("RecordIngest", {
  at: Instant,
  observed: Count,
  revised: Count,
  /** The newest date it told of; null where it told of none. */
  newest: Schema.NullOr(CalendarDate),
  demo: Schema.Boolean,
})
/** It could not be asked, or its answer not be read: what was stored stays. */
export const RecordFeedFailure = message("RecordFeedFailure", { at: Instant, detail: Detail })

export const FeedCommand = Schema.Union([RecordIngest, RecordFeedFailure])
export type FeedCommand = typeof FeedCommand.Type

/** Ids of feeds beside those of the metrics. */
export const other_feeds = ["prices", "watchlist"] as const
