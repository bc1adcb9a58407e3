/** Jobs over HTTP. Source: document 2 §4; DECISIONS, document 2, job fields, cancel, retry. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import {
  for_operators,
  for_target_readers,
  for_tenants,
} from "#gateway/share-protection/apis/permission.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { ProjectId, TargetId, Uuid } from "#schemas/share-protection/id.ts"
import { JobState, JobType } from "#schemas/share-protection/job.ts"
import {
  Conflict,
  NotFound,
  RepositoryLocked,
  rejections,
  when,
} from "#schemas/share-protection/rejection.ts"
import { Job } from "#schemas/share-protection/views/job.ts"
import { filterBy, idText, page_query, pathId } from "#schemas/share-protection/views/page.ts"

const params = pathId("job")
const changed = Job.pipe(HttpApiSchema.status(202))
const query = {
  ...page_query,
  resource_id: filterBy(
    idText(Uuid),
    "Return only jobs of the target, backup or restore with this id.",
  ),
  target_id: filterBy(idText(TargetId), "Return only jobs that use this target."),
  state: filterBy(JobState, "Return only jobs in this state."),
  job_type: filterBy(JobType, "Return only jobs of this type."),
}

const cancelling =
  "The job ends in `error` with the detail `cancelled`, and so does its backup or restore. The " +
  "worker stops the backup engine, which leaves the repository usable. A cancelled job is not " +
  "retried automatically."

const about = {
  list: {
    summary: "List jobs",
    description:
      "Returns the jobs of the token's project, newest first, one page at a time. With a token " +
      "that is scoped to a domain (Shape B), send `target_id` or `resource_id` to get the jobs " +
      `of a target of the domain. ${for_target_readers}`,
  },
  get: {
    summary: "Get a job",
    description:
      "Returns a job with its progress. Poll it to follow an operation. " + for_target_readers,
  },
  cancel: {
    summary: "Cancel a job",
    description: `Cancels a job that has not ended. ${cancelling} ${for_tenants}`,
  },
}

const about_admin = {
  list: {
    summary: "List the jobs of all projects",
    description:
      "Returns the jobs of all projects, or of one, newest first, one page at a time. " +
      for_operators,
  },
  get: {
    summary: "Get a job of any project",
    description: `Returns a job with its progress. ${for_operators}`,
  },
  retry: {
    summary: "Retry a failed job",
    description:
      "Starts a new attempt of a job that ended in `error`. The job and its backup or restore " +
      "are queued again, and `attempt` increases by one. A job that is `available` is final. " +
      for_operators,
  },
  cancel: {
    summary: "Cancel a job of any project",
    description: `Cancels a job that has not ended. ${cancelling} ${for_operators}`,
  },
}

const errors = {
  cancel: rejections(NotFound, when(Conflict, "`svc.conflict`: the job has ended.")),
  retry: rejections(
    NotFound,
    when(
      Conflict,
      "`svc.conflict`: the job is not in `error`, or its resource does not allow a new attempt.",
    ),
    when(
      RepositoryLocked,
      "`svc.repository_locked`: the format of the target's repository is being upgraded.",
    ),
  ),
}

export const jobGroup = (shape: Shape) =>
  HttpApiGroup.make("jobs")
    .annotate(
      OpenApi.Description,
      "Jobs: asynchronous operations, such as backups, restores and enrollments.",
    )
    .add(
      HttpApiEndpoint.get("list", "/v1/jobs", {
        query,
        success: listOf(shape, "jobs", Job),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:jobs:list" }),
      HttpApiEndpoint.get("get", "/v1/jobs/:id", {
        params,
        success: Job,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about.get))
        .annotate(Needs, { rule: "share-protection:jobs:get" }),
      HttpApiEndpoint.post("cancel", "/v1/jobs/:id/cancel", {
        params,
        success: changed,
        error: errors.cancel,
      })
        .annotateMerge(OpenApi.annotations(about.cancel))
        .annotate(Needs, { rule: "share-protection:jobs:cancel" }),
    )

/** Jobs of all projects. */
export const adminJobGroup = (shape: Shape) =>
  HttpApiGroup.make("admin-jobs")
    .annotate(OpenApi.Description, "Jobs of all projects, for operators.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/jobs", {
        query: {
          ...query,
          project_id: filterBy(ProjectId, "Return only jobs of this project."),
        },
        success: listOf(shape, "jobs", Job),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about_admin.list))
        .annotate(Needs, { rule: "share-protection:admin:jobs:list" }),
      HttpApiEndpoint.get("get", "/v1/admin/jobs/:id", {
        params,
        success: Job,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about_admin.get))
        .annotate(Needs, { rule: "share-protection:admin:jobs:get" }),
      HttpApiEndpoint.post("retry", "/v1/admin/jobs/:id/retry", {
        params,
        success: changed,
        error: errors.retry,
      })
        .annotateMerge(OpenApi.annotations(about_admin.retry))
        .annotate(Needs, { rule: "share-protection:admin:jobs:retry" }),
      HttpApiEndpoint.post("cancel", "/v1/admin/jobs/:id/cancel", {
        params,
        success: changed,
        error: errors.cancel,
      })
        .annotateMerge(OpenApi.annotations(about_admin.cancel))
        .annotate(Needs, { rule: "share-protection:admin:jobs:cancel" }),
    )
