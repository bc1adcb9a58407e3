/** Policies over HTTP. Source: document 2 §4 Tenant endpoints, rules 2 and 3; DECISIONS, policy. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { KeyNotNeeded } from "#gateway/limits.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { ShareId, TargetId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  FieldImmutable,
  NotFound,
  PolicyHasInflightBackup,
  QuotaExceeded,
  rejections,
} from "#schemas/share-protection/rejection.ts"
import { as_of_query, idText, page_query } from "#schemas/share-protection/views/page.ts"
import { NewRetentionPreview, RetentionPreview } from "#schemas/share-protection/views/policy.ts"

const params = { id: Schema.String }

export const policyGroup = (shape: Shape) => {
  const { View, New, Patch } = shape.policy
  return HttpApiGroup.make("policies")
    .annotate(
      OpenApi.Description,
      "Policies: when a share is backed up, to where, and what is kept.",
    )
    .add(
      HttpApiEndpoint.get("list", "/v1/policies", {
        query: {
          ...page_query,
          ...as_of_query,
          share_id: Schema.optionalKey(idText(ShareId)),
          target_id: Schema.optionalKey(idText(TargetId)),
        },
        success: listOf(shape, "policies", View),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the policies")
        .annotate(Needs, { rule: "share-protection:policies:list" }),
      HttpApiEndpoint.post("create", "/v1/policies", {
        payload: New,
        success: View.pipe(HttpApiSchema.status(201)),
        error: rejections(NotFound, Conflict, QuotaExceeded),
      })
        .annotate(OpenApi.Summary, "Define the policy of a share")
        .annotate(Needs, { rule: "share-protection:policies:create" }),
      HttpApiEndpoint.get("get", "/v1/policies/:id", {
        params,
        query: as_of_query,
        success: View,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a policy")
        .annotate(Needs, { rule: "share-protection:policies:get" }),
      HttpApiEndpoint.patch("update", "/v1/policies/:id", {
        params,
        payload: Patch,
        success: View,
        error: rejections(NotFound, FieldImmutable),
      })
        .annotate(OpenApi.Summary, "Change a policy")
        .annotate(Needs, { rule: "share-protection:policies:update" }),
      HttpApiEndpoint.post("preview", "/v1/policies/:id/retention-preview", {
        params,
        payload: NewRetentionPreview,
        success: RetentionPreview,
        error: rejections(NotFound, Conflict),
      })
        .annotate(KeyNotNeeded, "It changes nothing.")
        .annotate(OpenApi.Summary, "See what a retention would keep")
        .annotate(Needs, { rule: "share-protection:policies:preview_retention" }),
      HttpApiEndpoint.delete("delete", "/v1/policies/:id", {
        params,
        error: rejections(NotFound, PolicyHasInflightBackup),
      })
        .annotate(OpenApi.Summary, "Delete a policy")
        .annotate(Needs, { rule: "share-protection:policies:delete" }),
    )
}
