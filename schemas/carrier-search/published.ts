/**
 * The published events of carrier search.
 *
 * Types, fields and their meanings never change and are never removed. A search is one event, not
 * one per number. Source: DECISIONS "published events".
 */
import { Schema } from "effect"
import { McNumber } from "#schemas/carrier-search/carrier.ts"
import { outcomes } from "#schemas/carrier-search/search.ts"
import { registries } from "#schemas/carrier-search/source.ts"
import type { PublishedTypes } from "#schemas/published.ts"

const described = (description: string) => ({ description })

export const published = {
  carrier_search_completed: {
    aggregate: "search",
    subject: "the range, `<start>-<end>`",
    when: "A search ended: it succeeded, failed, or was abandoned.",
    data: Schema.Struct({
      node_id: Schema.String.annotateKey(described("ID of the node that ran the search.")),
      start: McNumber.annotateKey(described("First MC number of the range.")),
      end: McNumber.annotateKey(described("Last MC number of the range, inclusive.")),
      registry: Schema.Literals(registries).annotateKey(described("Registry that was searched.")),
      outcome: Schema.Literals(outcomes).annotateKey(
        described("`abandoned`: the client disconnected, or the server stopped."),
      ),
      found: Schema.Int.annotateKey(described("Number of carriers found.")),
      answered: Schema.Int.annotateKey(described("Number of MC numbers that were looked up.")),
      reason: Schema.NullOr(Schema.String).annotateKey(
        described("Reason for the failure, as text; null if the search did not fail."),
      ),
      duration_ms: Schema.Int.annotateKey(described("Duration in milliseconds.")),
    }),
  },
} satisfies PublishedTypes
