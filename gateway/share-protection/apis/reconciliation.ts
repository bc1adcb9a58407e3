/** Reconciliation over HTTP. Source: document 2 §2 Reconciliation status, §4; DECISIONS. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { ReconciliationStatus } from "#schemas/share-protection/reconciliation.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"

const Triggered = Schema.Struct({ status: Schema.Literal("triggered") })

export const ReconciliationGroup = HttpApiGroup.make("reconciliation")
  .annotate(OpenApi.Description, "Reconciliation: what is compared with the world.")
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/reconciliation", {
      success: ReconciliationStatus,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read the status of reconciliation")
      .annotate(Needs, { rule: "share-protection:admin:reconciliation:get" }),
    HttpApiEndpoint.post("trigger", "/v1/admin/reconciliation/trigger", {
      success: Triggered.pipe(HttpApiSchema.status(202)),
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Ask for a reconciliation")
      .annotate(Needs, { rule: "share-protection:admin:reconciliation:trigger" }),
  )
