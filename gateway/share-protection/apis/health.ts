/** The conductor's health over HTTP. Source: document 2 §4 Admin endpoints; DECISIONS. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"

export const HealthGroup = HttpApiGroup.make("health")
  .annotate(OpenApi.Description, "Whether the service does its work.")
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/system/health", {
      success: Schema.Struct({ status: Schema.Literal("healthy") }),
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read whether the conductor is healthy")
      .annotate(Needs, { rule: "share-protection:admin:system:health" }),
  )
