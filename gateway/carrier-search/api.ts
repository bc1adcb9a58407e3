/**
 * Carrier search over HTTP; all endpoints are public.
 *
 * Source: document 3 §4 B, §5 B, §7 B; decisions of document 3, carrier range.
 */
import { Predicate, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { media_types } from "#gateway/carrier-search/negotiation.ts"
import { Unhurried } from "#gateway/limits.ts"
import { Carriers, mc_number_max } from "#schemas/carrier-search/carrier.ts"
import { Line } from "#schemas/carrier-search/line.ts"
import {
  anywhere,
  BadRange,
  Late,
  NotAcceptable,
  RegistryFailed,
} from "#schemas/carrier-search/rejection.ts"
import { Sources } from "#schemas/carrier-search/source.ts"

/** Not validated here: the handler does that, with the error texts of the document. */
const RawParameter = Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))

const described: Readonly<Record<string, string>> = {
  start: "First MC number.",
  end: "Last MC number, not below `start`.",
}

/** Replaces the generated parameter in the OpenAPI document. */
const documented = (parameter: unknown) => {
  const name = Predicate.hasProperty(parameter, "name") ? String(parameter.name) : ""
  const schema = { type: "integer", minimum: 1, maximum: mc_number_max }
  return { name, in: "query", required: true, description: described[name], schema }
}

const about =
  "Road carriers with active authority that are carriers alone, by MC number. As JSON or CSV the " +
  "answer is all or nothing; as lines, carriers come as they are found."

/** A table, sent once it is complete. */
const Csv = Schema.String.pipe(HttpApiSchema.asText({ contentType: media_types.csv }))

const group = HttpApiGroup.make("carriers")
  .annotate(OpenApi.Description, about)
  .add(
    HttpApiEndpoint.get("search", "/api/search", {
      query: { start: RawParameter, end: RawParameter },
      success: [Carriers, Csv, HttpApiSchema.StreamNdjson({ schema: Line })],
      error: [...anywhere, BadRange, NotAcceptable, RegistryFailed],
    })
      .annotate(OpenApi.Summary, "Search a range of MC numbers")
      .annotate(OpenApi.Transform, (operation) => ({
        ...operation,
        // The library's own document: a list of parameters.
        parameters: (operation.parameters as ReadonlyArray<unknown>).map(documented),
      }))
      // The response has no deadline: each number takes a request to the registry.
      .annotate(Unhurried, true),
    HttpApiEndpoint.get("sources", "/api/search/sources", {
      success: Sources,
      error: [...anywhere, Late],
    }).annotate(OpenApi.Summary, "Read which registry answers, its age and its health"),
  )
  .annotateEndpoints(Needs, "public")

export const CarrierSearchApi = HttpApi.make("carrier-search").add(group)
