/** The lines of a streamed search response. Source: decisions, carrier range. */
import { Schema } from "effect"
import { Carrier } from "#schemas/carrier-search/carrier.ts"
import { registries } from "#schemas/carrier-search/source.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The first line, and at least one per second. */
export const Progress = Schema.Struct({
  progress: Schema.Struct({
    done: Count.annotateKey({ description: "MC numbers looked up so far." }),
    total: Count.annotateKey({ description: "MC numbers in the range." }),
    found: Count.annotateKey({ description: "Carriers found so far." }),
  }).annotateKey({ description: "The progress of the search." }),
}).annotate({
  identifier: "SearchProgress",
  description: "The first line, and at least one per second.",
})

/** The last line of a complete response. */
export const Summary = Schema.Struct({
  summary: Schema.Struct({
    total: Count.annotateKey({ description: "MC numbers in the range." }),
    found: Count.annotateKey({ description: "Carriers found." }),
    duration_ms: Count.annotateKey({ description: "Duration of the search in milliseconds." }),
    registry: Schema.Literals(registries).annotateKey({
      description: "The registry that was searched.",
    }),
  }).annotateKey({ description: "The result of the search." }),
}).annotate({ identifier: "SearchSummary", description: "The last line of a complete response." })

/** The last line if a lookup failed: the lines before it are incomplete. */
export const Failed = Schema.Struct({
  error: Schema.String.annotateKey({ description: "Why the search failed." }),
}).annotate({
  identifier: "SearchFailure",
  description: "The last line of a failed search: earlier lines are incomplete.",
})

export const Line = Schema.Union([Carrier, Progress, Summary, Failed])
