/** Reconciliation over HTTP. Source: document 2 §2 Reconciliation status, §4; DECISIONS. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators } from "#gateway/share-protection/apis/permission.ts"
import { ReconciliationStatus } from "#schemas/share-protection/reconciliation.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"

const Triggered = Schema.Struct({
  status: Schema.Literal("triggered").annotateKey({ description: "Always `triggered`." }),
}).annotate({ description: "A reconciliation will start." })

const about = {
  get: {
    summary: "Get the reconciliation status",
    description:
      "Returns the last and the next reconciliation, and the differences that the last one found " +
      "between the records and the real shares, workers and repositories. It runs every " +
      `\`conductor.reconciliation_interval\` seconds (300). ${for_operators}`,
  },
  trigger: {
    summary: "Trigger a reconciliation",
    description:
      "Starts a reconciliation now instead of at its next time. Has no effect while one is " +
      `requested or running. ${for_operators}`,
  },
}

export const ReconciliationGroup = HttpApiGroup.make("reconciliation")
  .annotate(
    OpenApi.Description,
    "Reconciliation: compares the records with the real resources, for operators.",
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/reconciliation", {
      success: ReconciliationStatus,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.get))
      .annotate(Needs, { rule: "share-protection:admin:reconciliation:get" }),
    HttpApiEndpoint.post("trigger", "/v1/admin/reconciliation/trigger", {
      success: Triggered.pipe(HttpApiSchema.status(202)),
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.trigger))
      .annotate(Needs, { rule: "share-protection:admin:reconciliation:trigger" }),
  )
