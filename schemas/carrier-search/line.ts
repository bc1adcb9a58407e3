/** The lines of a search that is answered as it goes. Source: decisions, carrier range. */
import { Schema } from "effect"
import { Carrier } from "#schemas/carrier-search/carrier.ts"
import { registries } from "#schemas/carrier-search/source.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** At the beginning, and each second at least. */
export const Progress = Schema.Struct({
  progress: Schema.Struct({
    done: Count.annotateKey({ description: "Numbers that are answered." }),
    total: Count.annotateKey({ description: "Numbers of the range." }),
    found: Count.annotateKey({ description: "Carriers found." }),
  }),
})

/** The last line when every number was answered. */
export const Summary = Schema.Struct({
  summary: Schema.Struct({
    total: Count,
    found: Count,
    duration_ms: Count,
    registry: Schema.Literals(registries),
  }),
})

/** The last line when one was not: what came before it is not all there is. */
export const Failed = Schema.Struct({ error: Schema.String })

export const Line = Schema.Union([Carrier, Progress, Summary, Failed])
