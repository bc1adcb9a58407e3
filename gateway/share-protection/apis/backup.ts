/** Backups over HTTP. Source: document 2 §4, rules 1 and 7; DECISIONS, backup create, DELETE. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_tenants } from "#gateway/share-protection/apis/permission.ts"
import {
  acceptedOf,
  listOf,
  noContent,
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
  when,
} from "#schemas/share-protection/rejection.ts"
import { Flag, filterBy, idText, page_query, pathId } from "#schemas/share-protection/views/page.ts"

const params = pathId("backup")

const about = {
  list: {
    summary: "List backups",
    description:
      "Returns the backups of the token's project, newest first, one page at a time. Expired " +
      `backups are left out unless you request them. ${for_tenants}`,
  },
  create: {
    summary: "Create a backup",
    description:
      "Starts a job that backs up a share now. With a policy, its patterns and retention apply, " +
      "and in Shape A its target if the body names none; a backup without a policy never " +
      "expires. In Shape B, the policy determines the bucket.\n\n" +
      "`crash_consistent` is a preference. A share on a plain folder cannot be snapshotted: the " +
      "backup then reads the live share and its record has `crash_consistent: false`. While no " +
      "worker has a free slot, or the target is not enrolled, the job stays queued. A share can " +
      "have only one unfinished backup.\n\n" +
      "Backups count toward the project's quota (10,000 by default); expired ones do not. " +
      for_tenants,
  },
  get: { summary: "Get a backup", description: `Returns a backup. ${for_tenants}` },
  undelete: {
    summary: "Undelete an expired backup",
    description:
      "Starts a job that checks whether the snapshot of an expired backup still exists under " +
      "object lock, and recovers it. Until the job succeeds, the backup stays `expired`. " +
      "Afterwards it is `available`, and retention does not expire it again. See " +
      `\`recoverable_until\` for how long this works. ${for_tenants}`,
  },
  delete: {
    summary: "Delete a backup",
    description:
      "Deletes the backup's record; a job then removes its snapshot from the repository. A " +
      "backup that has not ended, that a restore reads, or whose objects are still locked cannot " +
      `be deleted. An expired backup can always be deleted. ${for_tenants}`,
  },
}

const query = {
  ...page_query,
  share_id: filterBy(idText(ShareId), "Return only backups of this share."),
  target_id: filterBy(idText(TargetId), "Return only backups in this target."),
  target_bucket_id: filterBy(idText(TargetId), "Return only backups in this bucket (Shape B)."),
  policy_id: filterBy(idText(PolicyId), "Return only backups of this policy."),
  status: filterBy(
    BackupStatus,
    "Return only backups with this status. `expired` returns only expired ones.",
  ),
  include_expired: filterBy(Flag, "Whether to return expired backups too. `false` by default."),
}

const quota = when(
  QuotaExceeded,
  "`svc.quota_exceeded`: the project has its maximum number of backups.",
)
const locked = when(
  RepositoryLocked,
  "`svc.repository_locked`: the format of the target's repository is being upgraded.",
)

const errors = {
  create: rejections(
    NotFound,
    when(
      Conflict,
      "`svc.conflict`: another backup of the share has not ended or, in Shape B, no bucket is " +
        "registered against the policy's template.",
    ),
    quota,
    locked,
  ),
  undelete: rejections(
    NotFound,
    when(Conflict, "`svc.conflict`: the backup is not expired."),
    quota,
    locked,
  ),
  delete: rejections(
    NotFound,
    when(
      Conflict,
      "`svc.conflict`: the backup has not ended, a restore reads it, or its objects are locked " +
        "until the `protected_until` in `detail`.",
    ),
  ),
}

export const backupGroup = (shape: Shape) => {
  const { View, New } = shape.backup
  return HttpApiGroup.make("backups")
    .annotate(OpenApi.Description, "Backups: copies of shares in the repository of a target.")
    .add(
      HttpApiEndpoint.get("list", "/v1/backups", {
        query,
        success: listOf(shape, "backups", View),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:backups:list" }),
      HttpApiEndpoint.post("create", "/v1/backups", {
        payload: New,
        success: acceptedOf(shape, "backup", View).pipe(HttpApiSchema.status(202)),
        error: errors.create,
      })
        .annotateMerge(OpenApi.annotations(about.create))
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:backups:create" }),
      HttpApiEndpoint.get("get", "/v1/backups/:id", {
        params,
        success: View,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about.get))
        .annotate(Needs, { rule: "share-protection:backups:get" }),
      HttpApiEndpoint.post("undelete", "/v1/backups/:id/undelete", {
        params,
        success: acceptedOf(shape, "backup", View).pipe(HttpApiSchema.status(202)),
        error: errors.undelete,
      })
        .annotateMerge(OpenApi.annotations(about.undelete))
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:backups:undelete" }),
      HttpApiEndpoint.delete("delete", "/v1/backups/:id", {
        params,
        success: noContent("The backup was deleted."),
        error: errors.delete,
      })
        .annotateMerge(OpenApi.annotations(about.delete))
        .annotate(Needs, { rule: "share-protection:backups:delete" }),
    )
}
