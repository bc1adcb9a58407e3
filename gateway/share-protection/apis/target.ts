/** Targets over HTTP. Source: document 2 §4; DECISIONS, document 2, target create, preflight. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import {
  acceptedOf,
  listOf,
  type Shape,
  withJobLocation,
} from "#gateway/share-protection/shapes/shape.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  FieldImmutable,
  NotFound,
  QuotaExceeded,
  RepositoryLocked,
  rejections,
  TargetHasDependents,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import { as_of_query, page_query } from "#schemas/share-protection/views/page.ts"
import { PreflightResult } from "#schemas/share-protection/views/target.ts"

const params = { id: Schema.String }
/** Targets for tenants; in Shape B domain owners register them. */
export const targetGroup = (shape: Shape) => {
  const { View, New, Patch } = shape.target
  const status = Schema.optionalKey(shape.TargetStatus)
  const accepted = acceptedOf(shape, "target", View).pipe(HttpApiSchema.status(202))
  return HttpApiGroup.make("targets")
    .annotate(OpenApi.Description, "Targets: buckets with a repository each.")
    .add(
      HttpApiEndpoint.get("list", "/v1/targets", {
        query: { ...page_query, ...as_of_query, status },
        success: listOf(shape, "targets", View),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the targets")
        .annotate(Needs, { rule: "share-protection:targets:list" }),
      HttpApiEndpoint.post("create", "/v1/targets", {
        payload: New,
        success: accepted,
        error: rejections(
          NotFound,
          Conflict,
          QuotaExceeded,
          TargetPreflightFailed,
          TrustAccessDenied,
        ),
      })
        .annotate(OpenApi.Summary, "Register a bucket as a target")
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:targets:create" }),
      HttpApiEndpoint.get("get", "/v1/targets/:id", {
        params,
        query: as_of_query,
        success: View,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a target")
        .annotate(Needs, { rule: "share-protection:targets:get" }),
      HttpApiEndpoint.patch("update", "/v1/targets/:id", {
        params,
        payload: Patch,
        success: View,
        error: rejections(NotFound, Conflict, FieldImmutable, TrustAccessDenied),
      })
        .annotate(OpenApi.Summary, "Change a target")
        .annotate(Needs, { rule: "share-protection:targets:update" }),
      HttpApiEndpoint.delete("delete", "/v1/targets/:id", {
        params,
        error: rejections(NotFound, Conflict, RepositoryLocked, TargetHasDependents),
      })
        .annotate(OpenApi.Summary, "Delete a target's record")
        .annotate(Needs, { rule: "share-protection:targets:delete" }),
      HttpApiEndpoint.get("preflight", "/v1/targets/:id/preflight", {
        params,
        success: PreflightResult,
        error: rejections(NotFound, TargetPreflightFailed, TrustAccessDenied),
      })
        .annotate(OpenApi.Summary, "Check a target's bucket")
        .annotate(Needs, { rule: "share-protection:targets:preflight" }),
      HttpApiEndpoint.post("enroll", "/v1/targets/:id/enroll", {
        params,
        success: accepted,
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Enroll a target again after an error")
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:targets:enroll" }),
    )
}

/** Targets of all projects. */
export const adminTargetGroup = (shape: Shape) => {
  const { View } = shape.target
  const status = Schema.optionalKey(shape.TargetStatus)
  return HttpApiGroup.make("admin-targets")
    .annotate(OpenApi.Description, "Targets of all projects.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/targets", {
        query: { ...page_query, ...as_of_query, status, project_id: Schema.optionalKey(ProjectId) },
        success: listOf(shape, "targets", View),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the targets of all projects")
        .annotate(Needs, { rule: "share-protection:admin:targets:list" }),
      HttpApiEndpoint.post("upgrade", "/v1/admin/targets/:id/repo-format-upgrade", {
        params,
        success: acceptedOf(shape, "target", View).pipe(HttpApiSchema.status(202)),
        error: rejections(NotFound, Conflict, RepositoryLocked),
      })
        .annotate(OpenApi.Summary, "Upgrade the format of a target's repository")
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:admin:targets:repo_format_upgrade" }),
    )
}
