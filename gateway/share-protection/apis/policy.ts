/** Policies over HTTP. Source: document 2 §4 Tenant endpoints, rules 2 and 3; DECISIONS, policy. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { KeyNotNeeded } from "#gateway/limits.ts"
import { for_tenants } from "#gateway/share-protection/apis/permission.ts"
import { listOf, noContent, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { ShareId, TargetId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  FieldImmutable,
  NotFound,
  PolicyHasInflightBackup,
  QuotaExceeded,
  rejections,
  when,
} from "#schemas/share-protection/rejection.ts"
import {
  as_of_query,
  filterBy,
  idText,
  page_query,
  pathId,
} from "#schemas/share-protection/views/page.ts"
import { NewRetentionPreview, RetentionPreview } from "#schemas/share-protection/views/policy.ts"

const params = pathId("policy")

const about = {
  list: {
    summary: "List policies",
    description:
      "Returns the policies of the token's project, oldest first, one page at a time. " +
      for_tenants,
  },
  create: {
    summary: "Create a policy",
    description:
      "Creates the policy of a share: when it is backed up, to which target (Shape B: to a " +
      "template's bucket), and which backups are kept. A share can have only one policy. " +
      "`schedule` is a cron expression in `timezone`; the scheduler evaluates it every " +
      "`conductor.scheduler_interval` seconds (60). In Shape B, the template's default retention " +
      "applies if the body has none. The target may still be enrolling.\n\n" +
      `Policies count toward the project's quota (100 by default). ${for_tenants}`,
  },
  get: {
    summary: "Get a policy",
    description: `Returns a policy, now or as of an earlier time. ${for_tenants}`,
  },
  update: {
    summary: "Update a policy",
    description:
      "Changes the fields in the request; all others stay the same. Immutable fields are " +
      "accepted with their current value only. With `enabled: false` no scheduled backups are " +
      "made; existing backups are kept. A new retention applies from the next retention job on. " +
      for_tenants,
  },
  preview: {
    summary: "Preview a retention",
    description:
      "Returns which of the policy's current backups a retention would keep, and which would " +
      "expire. Changes nothing. Without `timezone`, the policy's own applies. " +
      for_tenants,
  },
  delete: {
    summary: "Delete a policy",
    description:
      "Deletes the policy. Its backups are kept, with `policy_id` null, and retention no longer " +
      `applies to them. ${for_tenants}`,
  },
}

const errors = {
  create: rejections(
    NotFound,
    when(Conflict, "`svc.conflict`: the share already has a policy."),
    when(QuotaExceeded, "`svc.quota_exceeded`: the project has its maximum number of policies."),
  ),
  preview: rejections(
    NotFound,
    when(Conflict, "`svc.conflict`: the policy has more than 10,000 backups."),
  ),
}

export const policyGroup = (shape: Shape) => {
  const { View, New, Patch } = shape.policy
  return HttpApiGroup.make("policies")
    .annotate(
      OpenApi.Description,
      "Policies: when a share is backed up, to where, and which backups are kept.",
    )
    .add(
      HttpApiEndpoint.get("list", "/v1/policies", {
        query: {
          ...page_query,
          ...as_of_query,
          share_id: filterBy(idText(ShareId), "Return only the policy of this share."),
          target_id: filterBy(idText(TargetId), "Return only policies with this target."),
        },
        success: listOf(shape, "policies", View),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:policies:list" }),
      HttpApiEndpoint.post("create", "/v1/policies", {
        payload: New,
        success: View.pipe(HttpApiSchema.status(201)),
        error: errors.create,
      })
        .annotateMerge(OpenApi.annotations(about.create))
        .annotate(Needs, { rule: "share-protection:policies:create" }),
      HttpApiEndpoint.get("get", "/v1/policies/:id", {
        params,
        query: as_of_query,
        success: View,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about.get))
        .annotate(Needs, { rule: "share-protection:policies:get" }),
      HttpApiEndpoint.patch("update", "/v1/policies/:id", {
        params,
        payload: Patch,
        success: View,
        error: rejections(NotFound, FieldImmutable),
      })
        .annotateMerge(OpenApi.annotations(about.update))
        .annotate(Needs, { rule: "share-protection:policies:update" }),
      HttpApiEndpoint.post("preview", "/v1/policies/:id/retention-preview", {
        params,
        payload: NewRetentionPreview,
        success: RetentionPreview,
        error: errors.preview,
      })
        .annotate(KeyNotNeeded, "it changes nothing.")
        .annotateMerge(OpenApi.annotations(about.preview))
        .annotate(Needs, { rule: "share-protection:policies:preview_retention" }),
      HttpApiEndpoint.delete("delete", "/v1/policies/:id", {
        params,
        success: noContent("The policy was deleted."),
        error: rejections(NotFound, PolicyHasInflightBackup),
      })
        .annotateMerge(OpenApi.annotations(about.delete))
        .annotate(Needs, { rule: "share-protection:policies:delete" }),
    )
}
