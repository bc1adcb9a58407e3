/** Endpoints of every process: probes and metrics. Source: DECISIONS, "health". */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs, PublicWhen } from "#gateway/access.ts"

const Text = Schema.String.pipe(HttpApiSchema.asText())

// Not `health`, which is a group of share protection.
const process = HttpApiGroup.make("process")
  .annotate(OpenApi.Description, "Whether the process lives and is ready, and its figures.")
  .add(
    HttpApiEndpoint.get("live", "/livez", { success: Text })
      .annotate(OpenApi.Summary, "Read whether the process lives")
      .annotate(Needs, "public"),
    HttpApiEndpoint.get("ready", "/readyz", {
      success: Text,
      error: Text.pipe(HttpApiSchema.status(503)),
    })
      .annotate(OpenApi.Summary, "Read whether the services are ready")
      .annotate(Needs, "public"),
    HttpApiEndpoint.get("metrics", "/metrics", { success: Text })
      .annotate(OpenApi.Summary, "Read the metrics, for Prometheus")
      .annotate(Needs, { roles: ["admin"] })
      .annotate(PublicWhen, ({ metrics }) => metrics.public),
  )

export const HealthApi = HttpApi.make("process").add(process)
