/**
 * Searches processed by one node, as reported by its spool.
 *
 * Stream: carrier-search.search.<node id>.
 */
import { Schema } from "effect"
import { SearchFact } from "#schemas/carrier-search/search.ts"
import { message } from "#schemas/message.ts"
import { place } from "#schemas/spooled.ts"

/** A search completed, failed or was abandoned. The event does not list the docket numbers. */
export const CarrierSearchCompleted = message("CarrierSearchCompleted", {
  ...place,
  ...SearchFact.fields,
})

export const SearchEvent = Schema.Union([CarrierSearchCompleted]).pipe(Schema.toTaggedUnion("type"))
export type SearchEvent = typeof SearchEvent.Type
