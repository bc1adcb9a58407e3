/** Endpoints of documents and pages. Source: decisions of all services, "/". */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { NotFound } from "#schemas/system/rejection.ts"
import { OneVersion, Versions } from "#schemas/system/version.ts"

const Html = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" }))

const Bytes = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array())

const NoPage = NotFound.annotate({
  description: "The page or file does not exist, or `Accept` does not allow HTML.",
})

const open = HttpApiGroup.make("system")
  .annotate(OpenApi.Description, "What the process says of itself.")
  .add(
    HttpApiEndpoint.get("home", "/", {
      success: [Versions.pipe(HttpApiSchema.status(300)), Html],
    }).annotate(OpenApi.Summary, "Read which versions there are"),
    HttpApiEndpoint.get("carriers", "/carriers", { success: Html, error: NotFound }).annotate(
      OpenApi.Summary,
      "Show the page of carrier search",
    ),
    HttpApiEndpoint.get("plants", "/plants", { success: Html, error: NotFound }).annotate(
      OpenApi.Summary,
      "Show the page of plant disease prediction",
    ),
    HttpApiEndpoint.get("console", "/console", { success: Html, error: NotFound }).annotate(
      OpenApi.Summary,
      "Show the page of operators",
    ),
    HttpApiEndpoint.get("asset", "/assets/:file", {
      params: { file: Schema.String },
      success: Bytes,
      error: NotFound,
    }).annotate(OpenApi.Summary, "Read a file of the pages"),
    HttpApiEndpoint.get("document", "/openapi.json", { success: Schema.Json }).annotate(
      OpenApi.Summary,
      "Read this document",
    ),
    HttpApiEndpoint.get("document_v1", "/v1/openapi.json", { success: Schema.Json }).annotate(
      OpenApi.Summary,
      "Read this document, below its version",
    ),
    HttpApiEndpoint.get("asyncapi", "/asyncapi.json", { success: Schema.Json }).annotate(
      OpenApi.Summary,
      "Read which events are published, and how they are had",
    ),
    HttpApiEndpoint.get("docs", "/docs", { success: Html, error: NoPage }).annotate(
      OpenApi.Summary,
      "Show this document as a page",
    ),
  )
  .annotateEndpoints(Needs, "public")

const closed = HttpApiGroup.make("operators")
  .annotate(OpenApi.Description, "The version of the process.")
  .add(
    HttpApiEndpoint.get("version", "/v1/", { success: OneVersion })
      .annotate(OpenApi.Summary, "Read the version")
      .annotate(Needs, "authenticated"),
  )

export const SystemApi = HttpApi.make("system").add(open, closed)
