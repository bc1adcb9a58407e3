/**
 * The searches that one node answered, as its spool told them.
 *
 * Stream: carrier-search.search.<node id>.
 */
import { Schema } from "effect"
import { SearchFact } from "#schemas/carrier-search/search.ts"
import { message } from "#schemas/message.ts"
import { place } from "#schemas/spooled.ts"

/** A search ended: it was answered, failed, or was abandoned. Never each number of it. */
export const CarrierSearchCompleted = message("CarrierSearchCompleted", {
  ...place,
  ...SearchFact.fields,
})

export const SearchEvent = Schema.Union([CarrierSearchCompleted]).pipe(Schema.toTaggedUnion("type"))
export type SearchEvent = typeof SearchEvent.Type
