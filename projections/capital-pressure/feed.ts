/** Last result of each feed. Source: document 3 §2 A SourcesOut. */
import { FeedEvent } from "#events/capital-pressure/feed.ts"
import { upsert } from "#projections/capital-pressure/upsert.ts"
import { projection } from "#projections/projection.ts"

export interface FeedTables {
  readonly capital_feed: {
    /** A metric's id, `prices` or `watchlist`. */
    readonly id: string
    /** RFC 3339 in UTC, like the next. */
    readonly last_ingested_at: string | null
    readonly last_error_at: string | null
    /** Null after a successful ingest. */
    readonly last_error: string | null
    /** 1 if its data was generated. */
    readonly demo: number
  }
}

const write = upsert<FeedTables["capital_feed"]>("capital_feed")

const succeed = write({ keys: ["id"], sets: ["last_ingested_at", "last_error", "demo"] })
const fail = write({ keys: ["id"], sets: ["last_error_at", "last_error"] })

export const feed = projection<FeedTables, FeedEvent>({
  part: "capital-pressure.feed",
  event: FeedEvent,
  create: ({ schema }) => [
    schema
      .createTable("capital_feed")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("last_ingested_at", "text")
      .addColumn("last_error_at", "text")
      .addColumn("last_error", "text")
      .addColumn("demo", "integer", (column) => column.notNull().defaultTo(0)),
  ],
  project: (event, { id }) => [
    event.type === "FeedIngested"
      ? succeed({ id, last_ingested_at: event.at, last_error: null, demo: event.demo ? 1 : 0 })
      : fail({ id, last_error_at: event.at, last_error: event.detail }),
  ],
})
