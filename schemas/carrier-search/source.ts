/** The registry in use, as `GET /api/search/sources` returns it. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"

export const registries = ["fmcsa", "mirror", "none"] as const

const nullable = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.NullOr(schema).annotateKey({ description })

export const Source = Schema.Struct({
  registry: Schema.Literals(registries).annotateKey({
    description:
      "`fmcsa`: the QCMobile API. `mirror`: the imported files. `none`: no registry is configured.",
  }),
  is_healthy: Schema.Boolean.annotateKey({
    description: "Whether the registry can serve a search now.",
  }),
  detail: nullable(Schema.String, "Why it cannot, and what to do. Null if it is healthy."),
  carriers: nullable(
    Schema.Int,
    "Number of carriers in the mirror that a search can return. Null for other registries.",
  ),
  dockets: nullable(
    Schema.Int,
    "Number of MC numbers in the mirror's files. Null for other registries.",
  ),
  as_of: nullable(Instant, "Date of the oldest of the mirror's files. Null for other registries."),
  imported_at: nullable(Instant, "Time of the mirror's import. Null for other registries."),
  is_demo: Schema.Boolean.annotateKey({
    description: "Whether the carriers are generated, not real.",
  }),
  concurrency: nullable(
    Schema.Int,
    "Current limit of concurrent requests to the registry. Null for the mirror.",
  ),
  last_answer_at: nullable(
    Instant,
    "Time of the registry's last response. Null if there was none.",
  ),
  last_error_at: nullable(
    Instant,
    "Time of the last failed request to the registry. Null if there was none.",
  ),
  last_error: nullable(Schema.String, "Why that request failed. Null if none did."),
}).annotate({ identifier: "CarrierSource", description: "A configured registry." })
export type Source = typeof Source.Type

export const Sources = Schema.Struct({
  sources: Schema.Array(Source).annotateKey({
    description: "All configured registries, the one in use first.",
  }),
}).annotate({ identifier: "CarrierSources", description: "The configured registries." })
