/** Restores over HTTP. Source: document 2 §4 Tenant endpoints, rule 5; DECISIONS, restore. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_tenants } from "#gateway/share-protection/apis/permission.ts"
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
  when,
} from "#schemas/share-protection/rejection.ts"
import { filterBy, idText, page_query, pathId } from "#schemas/share-protection/views/page.ts"
import { NewRestore, Restore } from "#schemas/share-protection/views/restore.ts"

const about = {
  list: {
    summary: "List restores",
    description:
      "Returns the restores of the token's project, newest first, one page at a time. " +
      for_tenants,
  },
  create: {
    summary: "Create a restore",
    description:
      "Starts a job that copies a backup's files to a new share (`new_share`, the default) or " +
      "back to the original one (`in_place`). `sub_path` limits it to one file or folder. The id " +
      "of a new share is in `new_share_id` when the restore is `available`.\n\n" +
      "A restore in place overwrites changed files and deletes files that the backup does not " +
      "have, so it requires `force: true`. To see the changes first, send `dry_run: true`: the " +
      "restore then only returns its `plan`. Send the plan's `hash` as `plan_hash` to restore " +
      "only if the share has not changed since. Only one restore in place writes to a share at a " +
      `time; others stay queued, and so do backups of the share. ${for_tenants}`,
  },
  get: { summary: "Get a restore", description: `Returns a restore. ${for_tenants}` },
}

const errors = {
  create: rejections(
    when(NotFound, "`svc.not_found`: the backup does not exist, or belongs to another project."),
    when(
      Conflict,
      "`svc.conflict`: the backup is not available, or 100 restores are already reading it.",
    ),
    when(
      ForceRequired,
      "`svc.force_required`: a restore in place has neither `force: true` nor `dry_run: true`.",
    ),
    when(
      RepositoryLocked,
      "`svc.repository_locked`: the format of the target's repository is being upgraded.",
    ),
  ),
}

export const restoreGroup = (shape: Shape) =>
  HttpApiGroup.make("restores")
    .annotate(OpenApi.Description, "Restores: copies of a backup's files to a share.")
    .add(
      HttpApiEndpoint.get("list", "/v1/restores", {
        query: {
          ...page_query,
          backup_id: filterBy(idText(BackupId), "Return only restores of this backup."),
        },
        success: listOf(shape, "restores", Restore),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:restores:list" }),
      HttpApiEndpoint.post("create", "/v1/restores", {
        payload: NewRestore,
        success: acceptedOf(shape, "restore", Restore).pipe(HttpApiSchema.status(202)),
        error: errors.create,
      })
        .annotateMerge(OpenApi.annotations(about.create))
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:restores:create" }),
      HttpApiEndpoint.get("get", "/v1/restores/:id", {
        params: pathId("restore"),
        success: Restore,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about.get))
        .annotate(Needs, { rule: "share-protection:restores:get" }),
    )
