/** The registry in use, as `GET /api/search/sources` returns it. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"

export const registries = ["fmcsa", "mirror", "none"] as const

const nullable = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.NullOr(schema).annotateKey({ description })

export const Source = Schema.Struct({
  registry: Schema.Literals(registries).annotateKey({ description: "Which one answers searches." }),
  is_healthy: Schema.Boolean.annotateKey({ description: "Whether a search can be answered now." }),
  detail: nullable(Schema.String, "Why not, and what to do; null when it can."),
  carriers: nullable(Schema.Int, "Carriers that the mirror shows; null of another registry."),
  dockets: nullable(Schema.Int, "MC numbers that its files have, with a carrier or without."),
  as_of: nullable(Instant, "How old its oldest answers are: when those files were made."),
  imported_at: nullable(Instant, "When the mirror was filled."),
  is_demo: Schema.Boolean.annotateKey({ description: "Whether its carriers are generated." }),
  concurrency: nullable(Schema.Int, "Questions that may be under way at once, at present."),
  last_answer_at: nullable(Instant, "When the registry last answered, whatever it said."),
  last_error_at: nullable(Instant, "When it last failed to."),
  last_error: nullable(Schema.String, "Why it failed then."),
})
export type Source = typeof Source.Type

export const Sources = Schema.Struct({ sources: Schema.Array(Source) })
