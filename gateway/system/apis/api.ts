/** Endpoints of documents and pages. Source: decisions of all services, "/". */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Examples } from "#gateway/reference.ts"
import examples from "#gateway/system/apis/examples.json" with { type: "json" }
import { NotFound } from "#schemas/system/rejection.ts"
import { OneVersion, Versions } from "#schemas/system/version.ts"

const Html = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" }))

const Bytes = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array())

const NoPage = NotFound.annotate({
  description: "The page or file does not exist, or `Accept` does not allow HTML.",
})

const page = <const Name extends string, const Path extends `/${string}`>(name: Name, path: Path) =>
  HttpApiEndpoint.get(name, path, { success: Html, error: NoPage }).annotate(
    OpenApi.Description,
    "Returns a public page for browsers. The operations that the page uses may require a token. " +
      "Without `Accept: text/html`, or if the page is not built or its service is not enabled, " +
      "the response is 404.",
  )

const open = HttpApiGroup.make("system")
  .annotate(OpenApi.Description, "Documents about the API, and pages for browsers.")
  .add(
    HttpApiEndpoint.get("home", "/", {
      success: [Versions.pipe(HttpApiSchema.status(300)), Html],
    })
      .annotate(OpenApi.Summary, "List the API versions")
      .annotate(
        OpenApi.Description,
        "Returns the versions with the status 300, as OpenStack's services do. A browser " +
          "(whose `Accept` prefers `text/html`) gets the dashboard page.",
      ),
    page("carriers", "/carriers").annotate(OpenApi.Summary, "Show the carrier search page"),
    page("plants", "/plants").annotate(OpenApi.Summary, "Show the plant disease page"),
    page("console", "/console").annotate(OpenApi.Summary, "Show the operators' console"),
    HttpApiEndpoint.get("asset", "/assets/:file", {
      params: {
        file: Schema.String.annotate({
          description: "Name of the file.",
          documentedAs: { type: "string", pattern: "^[A-Za-z0-9_.-]{1,128}$" },
        }),
      },
      success: Bytes,
      error: NoPage,
    })
      .annotate(OpenApi.Summary, "Get a file of the pages")
      .annotate(
        OpenApi.Description,
        "Returns a script, style sheet, font or image of the pages. Names contain a hash of " +
          "the content, so a client may cache files indefinitely.",
      ),
    HttpApiEndpoint.get("document", "/openapi.json", { success: Schema.Json })
      .annotate(OpenApi.Summary, "Get this document")
      .annotate(
        OpenApi.Description,
        "Returns the OpenAPI 3.1 document of the services that this server runs, with the " +
          "shape of share protection that it is configured for.",
      ),
    HttpApiEndpoint.get("document_v1", "/v1/openapi.json", { success: Schema.Json })
      .annotate(OpenApi.Summary, "Get this document by its versioned path")
      .annotate(OpenApi.Description, "Returns the same document as `GET /openapi.json`."),
    HttpApiEndpoint.get("asyncapi", "/asyncapi.json", { success: Schema.Json })
      .annotate(OpenApi.Summary, "Get the AsyncAPI document")
      .annotate(
        OpenApi.Description,
        "Returns the AsyncAPI document: the published events with their fields, and how to " +
          "receive them over HTTP, by webhook and from NATS.",
      ),
    page("docs", "/docs").annotate(OpenApi.Summary, "Show this document as a page"),
  )
  .annotateEndpoints(Needs, "public")

const closed = HttpApiGroup.make("operators")
  .annotate(OpenApi.Description, "The version of the API, for clients with a token.")
  .add(
    HttpApiEndpoint.get("version", "/v1/", { success: OneVersion })
      .annotate(OpenApi.Summary, "Get the API version")
      .annotate(
        OpenApi.Description,
        "Returns the version that this path serves. Unlike `/`, it needs a token.",
      )
      .annotate(Needs, "authenticated"),
  )

export const SystemApi = HttpApi.make("system").add(open, closed).annotate(Examples, examples)
