/**
 * The searches of one node, recorded from its spool.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { decider } from "#actors/decider.ts"
import { factChart, factEvents, outOfOrder } from "#actors/fact-log.ts"
import { CarrierSearchCompleted, SearchEvent } from "#events/carrier-search/search.ts"
import { RecordSearches, SearchFact } from "#schemas/carrier-search/search.ts"
import { FactsOutOfOrder } from "#schemas/spooled.ts"

export const machine = factChart("carrier-search.search", "CarrierSearchCompleted")

export const Search = decider({
  machine,
  version: 1,
  command: RecordSearches,
  event: SearchEvent,
  rejection: FactsOutOfOrder,
  propose: {
    RecordSearches: (command) => factEvents(command, (fact) => CarrierSearchCompleted.make(fact)),
  },
  reject: outOfOrder,
})

/** How spooled searches are recorded. */
export const searches = {
  service: "carrier-search",
  fact: SearchFact,
  to: Search,
  record: (facts: Omit<RecordSearches, "type">) => RecordSearches.make(facts),
} as const
