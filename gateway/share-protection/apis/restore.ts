/** Restores over HTTP. Source: document 2 §4 Tenant endpoints, rule 5; DECISIONS, restore. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import {
  acceptedOf,
  listOf,
  type Shape,
  withJobLocation,
} from "#gateway/share-protection/shapes/shape.ts"
import { BackupId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  ForceRequired,
  NotFound,
  RepositoryLocked,
  rejections,
} from "#schemas/share-protection/rejection.ts"
import { idText, page_query } from "#schemas/share-protection/views/page.ts"
import { NewRestore, Restore } from "#schemas/share-protection/views/restore.ts"

export const restoreGroup = (shape: Shape) =>
  HttpApiGroup.make("restores")
    .annotate(OpenApi.Description, "Restores: a backup's files on their way back.")
    .add(
      HttpApiEndpoint.get("list", "/v1/restores", {
        query: { ...page_query, backup_id: Schema.optionalKey(idText(BackupId)) },
        success: listOf(shape, "restores", Restore),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the restores")
        .annotate(Needs, { rule: "share-protection:restores:list" }),
      HttpApiEndpoint.post("create", "/v1/restores", {
        payload: NewRestore,
        success: acceptedOf(shape, "restore", Restore).pipe(HttpApiSchema.status(202)),
        error: rejections(NotFound, Conflict, ForceRequired, RepositoryLocked),
      })
        .annotate(OpenApi.Summary, "Restore a backup")
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:restores:create" }),
      HttpApiEndpoint.get("get", "/v1/restores/:id", {
        params: { id: Schema.String },
        success: Restore,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a restore")
        .annotate(Needs, { rule: "share-protection:restores:get" }),
    )
