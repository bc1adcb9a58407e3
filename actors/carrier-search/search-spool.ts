/** The spool of searches that are not yet in the log. */
import { Context } from "effect"
import type { Spool } from "#actors/spool.ts"
import type { SearchFact } from "#schemas/carrier-search/search.ts"

export class SearchSpool extends Context.Service<SearchSpool, Spool<SearchFact>>()(
  "actors/carrier-search/SearchSpool",
) {}
