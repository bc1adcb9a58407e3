/** The conductor's health over HTTP. Source: document 2 §4 Admin endpoints; DECISIONS. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators } from "#gateway/share-protection/apis/permission.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"

const about = {
  summary: "Get the conductor's health",
  description:
    "Returns 200 while the conductor, which runs jobs and schedules, is healthy. Otherwise " +
    `returns 503 with the reason in \`detail\`. ${for_operators}`,
}

const Healthy = Schema.Struct({
  status: Schema.Literal("healthy").annotateKey({ description: "Always `healthy`." }),
}).annotate({ description: "The conductor is healthy." })

export const HealthGroup = HttpApiGroup.make("health")
  .annotate(OpenApi.Description, "Health of the share protection service, for operators.")
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/system/health", {
      success: Healthy,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about))
      .annotate(Needs, { rule: "share-protection:admin:system:health" }),
  )
