/** What carrier search tells subscribers, in the words of its published types. */
import { SearchEvent } from "#events/carrier-search/search.ts"
import { publication, type ToldOf } from "#projections/published-events.ts"
import type { published as types } from "#schemas/carrier-search/published.ts"
import { subjectOf } from "#schemas/carrier-search/search.ts"

type Told = ToldOf<typeof types>

const search = publication({
  part: "carrier-search.search",
  event: SearchEvent,
  tell: (event, { id: node_id }): Told => {
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

/** Every kind of carrier search that publishes. */
export const published = [search]
