/** A search as a fact: its aggregate, its published events and its audit entries. */
import { describe } from "@effect/vitest"
import { machine, searches } from "#actors/carrier-search/search.ts"
import { CarrierSearchCompleted } from "#events/carrier-search/search.ts"
import { published as publications } from "#projections/carrier-search/published.ts"
import { published as types } from "#schemas/carrier-search/published.ts"
import { factContract } from "../contract/fact-log.ts"
import { searchFact } from "../world/spooled.ts"

describe("a search", () => {
  factContract({
    kind: searches,
    machine,
    fact: searchFact,
    publications,
    types,
    event: (placed) => CarrierSearchCompleted.make(placed),
    published: {
      type: "carrier_search_completed",
      subject: "1-100",
      data: {
        start: 1,
        end: 100,
        registry: "fmcsa",
        outcome: "answered",
        found: 3,
        answered: 100,
        reason: null,
        duration_ms: 12,
      },
    },
  })
})
