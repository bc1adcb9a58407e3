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
  described("ID of the feed's metric, or `prices`, or `watchlist`."),
)
const at = Instant.annotateKey(described("Time of the ingest, RFC 3339 in UTC."))
const demo = Schema.Boolean.annotateKey(described("Whether the data is generated."))

export const published = {
  metrics_ingested: {
    ...feed,
    when: "A feed was ingested, with or without new values.",
    data: Schema.Struct({
      feed_id,
      at,
      observed: Schema.Int.annotateKey(described("Number of new values.")),
      revised: Schema.Int.annotateKey(described("Number of revised values.")),
      newest: Schema.NullOr(CalendarDate).annotateKey(
        described("Newest date of the feed; null if it has no values."),
      ),
      demo,
    }),
  },
  metric_ingest_failed: {
    ...feed,
    when: "A feed could not be ingested; the stored values remain.",
    data: Schema.Struct({
      feed_id,
      at,
      detail: Schema.String.annotateKey(described("Reason for the failure, as text.")),
    }),
  },
  composite_computed: {
    aggregate: "composite",
    subject: "the year",
    when: "The composite was computed for new days, or changed for earlier ones.",
    data: Schema.Struct({
      from: CalendarDate.annotateKey(described("First of these days.")),
      to: CalendarDate.annotateKey(described("Last of these days.")),
      days: Schema.Int.annotateKey(described("Number of these days.")),
      z: Schema.Finite.annotateKey(
        described("Composite of the last of these days; positive values are pressure."),
      ),
    }),
  },
  composite_withdrawn: {
    aggregate: "composite",
    subject: "the year",
    when: "The composite of some days was removed, because values were corrected.",
    data: Schema.Struct({
      dates: Schema.Array(CalendarDate).annotateKey(described("These days, in order.")),
    }),
  },
  watchlist_set: {
    aggregate: "watchlist",
    subject: "the watchlist",
    when: "The operator's watchlist targets changed.",
    data: Schema.Struct({
      tickers: Schema.Array(Schema.String).annotateKey(described("Tickers that have a target.")),
      demo,
    }),
  },
} satisfies PublishedTypes
