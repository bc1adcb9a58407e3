/** What the process says of itself. Source: decisions of all services, "/" and "health". */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { PublicWhen } from "#gateway/limits.ts"
import { OneVersion, Versions } from "#schemas/system/version.ts"

const Text = Schema.String.pipe(HttpApiSchema.asText())
const Html = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" }))

const open = HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("home", "/", {
      success: [Versions.pipe(HttpApiSchema.status(300)), Html],
    }),
    HttpApiEndpoint.get("document", "/openapi.json", { success: Schema.Json }),
    HttpApiEndpoint.get("document_v1", "/v1/openapi.json", { success: Schema.Json }),
    HttpApiEndpoint.get("docs", "/docs", { success: Html }),
    HttpApiEndpoint.get("live", "/livez", { success: Text }),
    HttpApiEndpoint.get("ready", "/readyz", {
      success: Text,
      error: Text.pipe(HttpApiSchema.status(503)),
    }),
  )
  .annotateEndpoints(Needs, "public")

const closed = HttpApiGroup.make("operators").add(
  HttpApiEndpoint.get("version", "/v1/", { success: OneVersion }).annotate(Needs, "authenticated"),
  HttpApiEndpoint.get("metrics", "/metrics", { success: Text })
    .annotate(Needs, { roles: ["admin"] })
    .annotate(PublicWhen, ({ metrics }) => metrics.public),
)

export const SystemApi = HttpApi.make("system").add(open, closed)
