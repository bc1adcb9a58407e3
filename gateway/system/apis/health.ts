/** Endpoints of every process: probes and metrics. Source: DECISIONS, "health". */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs, PublicWhen } from "#gateway/access.ts"
import { Examples } from "#gateway/reference.ts"
import examples from "#gateway/system/apis/examples.json" with { type: "json" }

const Text = Schema.String.pipe(HttpApiSchema.asText())

// Not `health`, which is a group of share protection.
const process = HttpApiGroup.make("process")
  .annotate(OpenApi.Description, "Probes and metrics of a process.")
  .add(
    HttpApiEndpoint.get("live", "/livez", { success: Text })
      .annotate(OpenApi.Summary, "Check that the process is alive")
      .annotate(
        OpenApi.Description,
        "Responds with 200 and `ok` while the process runs. Use it as a liveness probe.",
      )
      .annotate(Needs, "public"),
    HttpApiEndpoint.get("ready", "/readyz", {
      success: Text,
      error: Text.pipe(HttpApiSchema.status(503)).annotate({
        description:
          "A service is not ready, or the process is stopping. The lines are as for 200.",
      }),
    })
      .annotate(OpenApi.Summary, "Check that the services are ready")
      .annotate(
        OpenApi.Description,
        "Returns one line for each service: `ok`, or why it is not ready. The status is 503 " +
          "if any service is not ready or the process is stopping. A service is ready if its " +
          "commands can be committed, projected and published. Use it as a readiness probe.",
      )
      .annotate(Needs, "public"),
    HttpApiEndpoint.get("metrics", "/metrics", { success: Text })
      .annotate(OpenApi.Summary, "Get the metrics")
      .annotate(
        OpenApi.Description,
        "Returns the metrics in the text format of Prometheus. Public if `metrics.public` " +
          "is true.",
      )
      .annotate(Needs, { roles: ["admin"] })
      .annotate(PublicWhen, ({ metrics }) => metrics.public),
  )

export const HealthApi = HttpApi.make("process").add(process).annotate(Examples, examples)
