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
    subject: "the range, `<start>-<end>`,",
    when: "A search ended: it was answered, failed, or was abandoned.",
    data: Schema.Struct({
      node_id: Schema.String.annotateKey(described("The node that answered it.")),
      start: McNumber.annotateKey(described("The first MC number of the range.")),
      end: McNumber.annotateKey(described("The last MC number of the range, inclusive.")),
      registry: Schema.Literals(registries).annotateKey(described("Which registry answered.")),
      outcome: Schema.Literals(outcomes).annotateKey(
        described("`abandoned`: the client went, or the server stopped."),
      ),
      found: Schema.Int.annotateKey(described("Carriers found until then.")),
      answered: Schema.Int.annotateKey(described("Numbers that were answered until then.")),
      reason: Schema.NullOr(Schema.String).annotateKey(
        described("Why it failed, in words; null where it did not."),
      ),
      duration_ms: Schema.Int.annotateKey(described("How long it took, in milliseconds.")),
    }),
  },
} satisfies PublishedTypes
