/**
 * Carrier search over HTTP; all endpoints are public.
 *
 * Source: document 3 §4 B, §5 B, §7 B; decisions of document 3, carrier range.
 */
import { Predicate, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import examples from "#gateway/carrier-search/examples.json" with { type: "json" }
import { media_types } from "#gateway/carrier-search/negotiation.ts"
import { Unhurried } from "#gateway/limits.ts"
import { Examples } from "#gateway/reference.ts"
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

/** Not validated by the schema: the handler does that, with the error texts of the document. */
const RawParameter = Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))

const described: Readonly<Record<string, string>> = {
  start: "First MC number, inclusive.",
  end: "Last MC number, inclusive. Not less than `start`.",
}

/** Replaces the generated parameter in the OpenAPI document. */
const documented = (parameter: unknown) => {
  const name = Predicate.hasProperty(parameter, "name") ? String(parameter.name) : ""
  const schema = { type: "integer", minimum: 1, maximum: mc_number_max }
  return { name, in: "query", required: true, description: described[name], schema }
}

const about = {
  group: "Carrier search: road carriers with active authority, by MC number.",
  search: {
    summary: "Search a range of MC numbers",
    description:
      "Returns the companies in the range whose authority is active and that are only carriers. " +
      "Inactive authorities, brokers and companies that are both are left out, without notice. " +
      "The range has at most `carrier.max_range` numbers (1,000,000); with the FMCSA registry " +
      "each number takes one request to it, so response time grows with the range.\n\n" +
      "`Accept` selects the format. JSON (the default) and CSV are sent when the search is " +
      "complete: a failed lookup makes the whole response 502. With `application/x-ndjson`, " +
      "carriers are sent as they are found, one per line, with lines of progress; the last line " +
      "has the summary or the error. Requires no token.",
  },
  sources: {
    summary: "List registries",
    description:
      "Returns the configured registries, the one in use first, with the age of their data and " +
      "their health. Without any, the only entry is `none` and says how to set one up. Requires " +
      "no token.",
  },
}

/** A table, sent once it is complete. */
const Csv = Schema.String.pipe(HttpApiSchema.asText({ contentType: media_types.csv }))

const group = HttpApiGroup.make("carriers")
  .annotate(OpenApi.Description, about.group)
  .add(
    HttpApiEndpoint.get("search", "/api/search", {
      query: { start: RawParameter, end: RawParameter },
      success: [Carriers, Csv, HttpApiSchema.StreamNdjson({ schema: Line })],
      error: [...anywhere, BadRange, NotAcceptable, RegistryFailed],
    })
      .annotateMerge(OpenApi.annotations(about.search))
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
    }).annotateMerge(OpenApi.annotations(about.sources)),
  )
  .annotateEndpoints(Needs, "public")

export const CarrierSearchApi = HttpApi.make("carrier-search")
  .add(group)
  .annotate(Examples, examples)
