/** Published events of the capital pressure dashboard. */
import { Order, Struct } from "effect"
import { CompositeEvent } from "#events/capital-pressure/composite.ts"
import { FeedEvent } from "#events/capital-pressure/feed.ts"
import { WatchlistEvent } from "#events/capital-pressure/watchlist.ts"
import { type EventDraftOf, publication } from "#projections/published-events.ts"
import type { published as types } from "#schemas/capital-pressure/published.ts"

type Draft = EventDraftOf<typeof types>

const feed = publication({
  part: "capital-pressure.feed",
  event: FeedEvent,
  toDraft: (event, { id: feed_id }): Draft => {
    switch (event.type) {
      case "FeedIngested": {
        const data = { feed_id, ...Struct.omit(event, ["type"]) }
        return { type: "metrics_ingested", data }
      }
      case "FeedFailed": {
        const data = { feed_id, ...Struct.omit(event, ["type"]) }
        return { type: "metric_ingest_failed", data }
      }
    }
  },
})

const byDate = Order.mapInput(Order.String, ({ ts }: { readonly ts: string }) => ts)

const composite = publication({
  part: "capital-pressure.composite",
  event: CompositeEvent,
  toDraft: (event): Draft => {
    if (event.type === "CompositeWithdrawn") {
      return { type: "composite_withdrawn", data: { dates: event.days.toSorted() } }
    }
    const days = event.days.toSorted(byDate)
    const { ts: from } = days[0] ?? event.days[0]
    const { ts: to, z } = days.at(-1) ?? event.days[0]
    return { type: "composite_computed", data: { from, to, days: days.length, z } }
  },
})

const watchlist = publication({
  part: "capital-pressure.watchlist",
  event: WatchlistEvent,
  toDraft: ({ targets, demo }): Draft => ({
    type: "watchlist_set",
    data: { tickers: targets.map(({ ticker }) => ticker), demo },
  }),
})

/** All publications of the dashboard. */
export const published = [feed, composite, watchlist]
