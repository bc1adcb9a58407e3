/** Published events of carrier search. */
import { SearchEvent } from "#events/carrier-search/search.ts"
import { type EventDraftOf, publication } from "#projections/published-events.ts"
import type { published as types } from "#schemas/carrier-search/published.ts"
import { subjectOf } from "#schemas/carrier-search/search.ts"

type Draft = EventDraftOf<typeof types>

const search = publication({
  part: "carrier-search.search",
  event: SearchEvent,
  toDraft: (event, { id: node_id }): Draft => {
    const { start, end, registry, outcome, found, answered, reason, duration_ms } = event
    const { at, actor, request_id, correlation_id } = event
    return {
      type: "carrier_search_completed",
      subject: subjectOf(event),
      data: {
        node_id,
        start,
        end,
        registry,
        outcome,
        found,
        answered,
        reason,
        duration_ms,
      },
      origin: { at, actor, request_id, correlation_id },
    }
  },
})

/** All publications of carrier search. */
export const published = [search]
