/** Backups over HTTP. Source: document 2 §4, rules 1 and 7; DECISIONS, backup create, DELETE. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import {
  acceptedOf,
  listOf,
  type Shape,
  withJobLocation,
} from "#gateway/share-protection/shapes/shape.ts"
import { BackupStatus } from "#schemas/share-protection/backup.ts"
import { PolicyId, ShareId, TargetId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  NotFound,
  QuotaExceeded,
  RepositoryLocked,
  rejections,
} from "#schemas/share-protection/rejection.ts"
import { Flag, idText, page_query } from "#schemas/share-protection/views/page.ts"

const params = { id: Schema.String }

export const backupGroup = (shape: Shape) => {
  const { View, New } = shape.backup
  return HttpApiGroup.make("backups")
    .annotate(OpenApi.Description, "Backups: snapshots of shares.")
    .add(
      HttpApiEndpoint.get("list", "/v1/backups", {
        query: {
          ...page_query,
          share_id: Schema.optionalKey(idText(ShareId)),
          target_id: Schema.optionalKey(idText(TargetId)),
          target_bucket_id: Schema.optionalKey(idText(TargetId)),
          policy_id: Schema.optionalKey(idText(PolicyId)),
          status: Schema.optionalKey(BackupStatus),
          include_expired: Schema.optionalKey(Flag),
        },
        success: listOf(shape, "backups", View),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the backups, newest first")
        .annotate(Needs, { rule: "share-protection:backups:list" }),
      HttpApiEndpoint.post("create", "/v1/backups", {
        payload: New,
        success: acceptedOf(shape, "backup", View).pipe(HttpApiSchema.status(202)),
        error: rejections(NotFound, Conflict, QuotaExceeded, RepositoryLocked),
      })
        .annotate(OpenApi.Summary, "Back up a share")
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:backups:create" }),
      HttpApiEndpoint.get("get", "/v1/backups/:id", {
        params,
        success: View,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a backup")
        .annotate(Needs, { rule: "share-protection:backups:get" }),
      HttpApiEndpoint.post("undelete", "/v1/backups/:id/undelete", {
        params,
        success: acceptedOf(shape, "backup", View).pipe(HttpApiSchema.status(202)),
        error: rejections(NotFound, Conflict, QuotaExceeded, RepositoryLocked),
      })
        .annotate(OpenApi.Summary, "Bring an expired backup back")
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:backups:undelete" }),
      HttpApiEndpoint.delete("delete", "/v1/backups/:id", {
        params,
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Delete a backup")
        .annotate(Needs, { rule: "share-protection:backups:delete" }),
    )
}
