/**
 * The published events of the capital pressure dashboard.
 *
 * Types, fields and their meanings never change and are never removed. An ingest is one event, not
 * one per value. Source: DECISIONS "published events".
 */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { Instant } from "#schemas/instant.ts"
import type { PublishedTypes } from "#schemas/published.ts"

const described = (description: string) => ({ description })

const feed = { aggregate: "feed", subject: "the feed" } as const
const feed_id = Schema.String.annotateKey(
  described("The metric whose feed it is, or `prices`, or `watchlist`."),
)
const at = Instant.annotateKey(described("When it was read, RFC 3339 in UTC."))
const demo = Schema.Boolean.annotateKey(described("Whether the data was generated."))

export const published = {
  metrics_ingested: {
    ...feed,
    when: "A feed was read, whether or not it had new values.",
    data: Schema.Struct({
      feed_id,
      at,
      observed: Schema.Int.annotateKey(described("Values that were not known before.")),
      revised: Schema.Int.annotateKey(described("Values that were known otherwise.")),
      newest: Schema.NullOr(CalendarDate).annotateKey(
        described("Its newest date; null if it has none."),
      ),
      demo,
    }),
  },
  metric_ingest_failed: {
    ...feed,
    when: "A feed could not be read; the stored values stay.",
    data: Schema.Struct({
      feed_id,
      at,
      detail: Schema.String.annotateKey(described("Why, in words.")),
    }),
  },
  composite_computed: {
    aggregate: "composite",
    subject: "the year",
    when: "Days of the composite were computed, or came out otherwise than before.",
    data: Schema.Struct({
      from: CalendarDate.annotateKey(described("The first of these days.")),
      to: CalendarDate.annotateKey(described("The last of these days.")),
      days: Schema.Int.annotateKey(described("How many they are.")),
      z: Schema.Finite.annotateKey(
        described("The composite of the last of them; positive is pressure."),
      ),
    }),
  },
  composite_withdrawn: {
    aggregate: "composite",
    subject: "the year",
    when: "Days lost their composite because values were corrected.",
    data: Schema.Struct({
      dates: Schema.Array(CalendarDate).annotateKey(described("These days, in their order.")),
    }),
  },
  watchlist_set: {
    aggregate: "watchlist",
    subject: "the watchlist",
    when: "The operator's targets were read, and are others than before.",
    data: Schema.Struct({
      tickers: Schema.Array(Schema.String).annotateKey(described("Those that have a target.")),
      demo,
    }),
  },
} satisfies PublishedTypes
