/** Targets over HTTP. Source: document 2 §4; DECISIONS, document 2, target create, preflight. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import {
  for_operators,
  for_target_owners,
  for_target_readers,
} from "#gateway/share-protection/apis/permission.ts"
import {
  acceptedOf,
  listOf,
  noContent,
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
  when,
} from "#schemas/share-protection/rejection.ts"
import { as_of_query, filterBy, page_query, pathId } from "#schemas/share-protection/views/page.ts"
import { PreflightResult } from "#schemas/share-protection/views/target.ts"

const params = pathId("target")

const about = {
  list: {
    summary: "List targets",
    description:
      "Returns the targets of the token's project, oldest first, one page at a time. A domain " +
      `owner gets the targets of the domain's templates. ${for_target_readers}`,
  },
  create: {
    summary: "Create a target",
    description:
      "Registers a bucket as a target and starts its enrollment job. The bucket must have been " +
      "created with object lock, and must not be used by another target.\n\n" +
      "The job checks the bucket (see preflight) and creates the repository, or opens the one " +
      "in the bucket. Follow the job until its state is `available`; the target is then " +
      "`available` too. If a check fails, both end in `error`. Without a trust or secrets the " +
      "target stays `pending` and its jobs stay queued until an update adds them. With " +
      "`enrollment.dispatch = inline`, this request runs the checks itself and creates nothing " +
      "if one fails.\n\n" +
      `Targets count toward the project's quota (10 by default). ${for_target_owners}`,
  },
  get: {
    summary: "Get a target",
    description: `Returns a target, now or as of an earlier time. ${for_target_readers}`,
  },
  update: {
    summary: "Update a target",
    description:
      "Changes the fields in the request; all others stay the same. Send `vault_secret_map` or " +
      "`vault_secret_refs`, not both. An update that adds the missing trust or secrets of a " +
      "`pending` target releases its enrollment job. After a failed enrollment, a change of a " +
      "field that enrollment uses starts a new one. Endpoint, bucket and addressing mode of an " +
      `\`available\` target cannot change. ${for_target_owners}`,
  },
  delete: {
    summary: "Delete a target",
    description:
      "Deletes the target's record and its jobs. Delete all policies and backups that reference " +
      "the target first. The data in the bucket is kept. " +
      for_target_owners,
  },
  preflight: {
    summary: "Check a target's bucket",
    description:
      "Runs the checks of the bucket now, with the target's own trust and secrets, and records " +
      "the result in the target. The checks are, in this order: `reachability`, `read_write`, " +
      "`addressing_style`, `versioning` (Shape B), `object_lock` (proven with a test object) and " +
      `\`lifecycle\` (no rule may expire objects). ${for_target_readers}`,
  },
  enroll: {
    summary: "Enroll a target again",
    description:
      "Starts a new enrollment job for a target whose enrollment failed. For a `pending` target, " +
      `returns the job that is already queued. ${for_target_owners}`,
  },
}

const denied = when(
  TrustAccessDenied,
  "`svc.trust_access_denied`: the trust or a secret is revoked, inaccessible or not the caller's.",
)

const errors = {
  create: rejections(
    when(NotFound, "`svc.not_found`: the target was deleted while the request was carried out."),
    Conflict,
    when(QuotaExceeded, "`svc.quota_exceeded`: the project has its maximum number of targets."),
    when(
      TargetPreflightFailed,
      "`svc.target_preflight_failed`: with inline enrollment, the bucket failed the check that " +
        "`detail` names. Nothing was created.",
    ),
    denied,
  ),
  update: rejections(
    NotFound,
    when(Conflict, "`svc.conflict`: the target is available, so its bucket cannot change."),
    FieldImmutable,
    denied,
  ),
  delete: rejections(
    NotFound,
    when(
      Conflict,
      "`svc.conflict`: more than 90 jobs of the target are queued. Cancel some first.",
    ),
    when(RepositoryLocked, "`svc.repository_locked`: a job uses the target's repository."),
    TargetHasDependents,
  ),
  preflight: rejections(
    NotFound,
    when(
      TargetPreflightFailed,
      "`svc.target_preflight_failed`: the bucket failed the check that `detail` names, or the " +
        "target has no trust or no secrets yet.",
    ),
    denied,
  ),
  enroll: rejections(
    NotFound,
    when(Conflict, "`svc.conflict`: the target is available, so it needs no enrollment."),
  ),
}

const statusOf = ({ TargetStatus }: Shape) =>
  filterBy(TargetStatus, "Return only targets with this status.")

/** Targets for tenants; in Shape B domain owners register them. */
export const targetGroup = (shape: Shape) => {
  const { View, New, Patch } = shape.target
  const accepted = acceptedOf(shape, "target", View).pipe(HttpApiSchema.status(202))
  return HttpApiGroup.make("targets")
    .annotate(OpenApi.Description, "Targets: buckets that each hold one backup repository.")
    .add(
      HttpApiEndpoint.get("list", "/v1/targets", {
        query: { ...page_query, ...as_of_query, status: statusOf(shape) },
        success: listOf(shape, "targets", View),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:targets:list" }),
      HttpApiEndpoint.post("create", "/v1/targets", {
        payload: New,
        success: accepted,
        error: errors.create,
      })
        .annotateMerge(OpenApi.annotations(about.create))
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:targets:create" }),
      HttpApiEndpoint.get("get", "/v1/targets/:id", {
        params,
        query: as_of_query,
        success: View,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about.get))
        .annotate(Needs, { rule: "share-protection:targets:get" }),
      HttpApiEndpoint.patch("update", "/v1/targets/:id", {
        params,
        payload: Patch,
        success: View,
        error: errors.update,
      })
        .annotateMerge(OpenApi.annotations(about.update))
        .annotate(Needs, { rule: "share-protection:targets:update" }),
      HttpApiEndpoint.delete("delete", "/v1/targets/:id", {
        params,
        success: noContent("The target's record was deleted."),
        error: errors.delete,
      })
        .annotateMerge(OpenApi.annotations(about.delete))
        .annotate(Needs, { rule: "share-protection:targets:delete" }),
      HttpApiEndpoint.get("preflight", "/v1/targets/:id/preflight", {
        params,
        success: PreflightResult,
        error: errors.preflight,
      })
        .annotateMerge(OpenApi.annotations(about.preflight))
        .annotate(Needs, { rule: "share-protection:targets:preflight" }),
      HttpApiEndpoint.post("enroll", "/v1/targets/:id/enroll", {
        params,
        success: accepted,
        error: errors.enroll,
      })
        .annotateMerge(OpenApi.annotations(about.enroll))
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:targets:enroll" }),
    )
}

const about_admin = {
  list: {
    summary: "List the targets of all projects",
    description:
      "Returns the targets of all projects, or of one, oldest first, one page at a time. " +
      for_operators,
  },
  upgrade: {
    summary: "Upgrade a repository's format",
    description:
      "Starts a job that upgrades the repository of an available target to the newest format of " +
      "the backup engine. Until it ends, backups, restores and deletes of the target are " +
      "rejected. An upgrade cannot be undone. Every worker must run the configured image first: " +
      "replace old ones with a rollout. The event `target_repo_format_upgraded` reports the end. " +
      "Requires the role `svc_admin`.",
  },
}

const upgrade_errors = rejections(
  NotFound,
  when(
    Conflict,
    "`svc.conflict`: the target is not available, or `detail` begins with " +
      "`MixedFleetBackupEngineFormatUnsafe` because a worker still runs another image.",
  ),
  when(RepositoryLocked, "`svc.repository_locked`: an upgrade of the target is already running."),
)

/** Targets of all projects. */
export const adminTargetGroup = (shape: Shape) => {
  const { View } = shape.target
  return HttpApiGroup.make("admin-targets")
    .annotate(OpenApi.Description, "Targets of all projects, for operators.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/targets", {
        query: {
          ...page_query,
          ...as_of_query,
          status: statusOf(shape),
          project_id: filterBy(ProjectId, "Return only targets of this project."),
        },
        success: listOf(shape, "targets", View),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about_admin.list))
        .annotate(Needs, { rule: "share-protection:admin:targets:list" }),
      HttpApiEndpoint.post("upgrade", "/v1/admin/targets/:id/repo-format-upgrade", {
        params,
        success: acceptedOf(shape, "target", View).pipe(HttpApiSchema.status(202)),
        error: upgrade_errors,
      })
        .annotateMerge(OpenApi.annotations(about_admin.upgrade))
        .annotate(OpenApi.Transform, withJobLocation)
        .annotate(Needs, { rule: "share-protection:admin:targets:repo_format_upgrade" }),
    )
}
