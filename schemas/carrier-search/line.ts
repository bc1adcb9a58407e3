/** The lines of a streamed search response. Source: decisions, carrier range. */
import { Schema } from "effect"
import { Carrier } from "#schemas/carrier-search/carrier.ts"
import { registries } from "#schemas/carrier-search/source.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The first line, and at least one per second. */
export const Progress = Schema.Struct({
  progress: Schema.Struct({
    done: Count.annotateKey({ description: "Numbers that are answered." }),
    total: Count.annotateKey({ description: "Numbers of the range." }),
    found: Count.annotateKey({ description: "Carriers found." }),
  }),
})

/** The last line of a complete response. */
export const Summary = Schema.Struct({
  summary: Schema.Struct({
    total: Count,
    found: Count,
    duration_ms: Count,
    registry: Schema.Literals(registries),
  }),
})

/** The last line if a lookup failed: the lines before it are incomplete. */
export const Failed = Schema.Struct({ error: Schema.String })

export const Line = Schema.Union([Carrier, Progress, Summary, Failed])
