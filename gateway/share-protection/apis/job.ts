/** Jobs over HTTP. Source: document 2 §4; DECISIONS, document 2, job fields, cancel, retry. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { ProjectId, TargetId, Uuid } from "#schemas/share-protection/id.ts"
import { JobState, JobType } from "#schemas/share-protection/job.ts"
import {
  Conflict,
  NotFound,
  RepositoryLocked,
  rejections,
} from "#schemas/share-protection/rejection.ts"
import { Job } from "#schemas/share-protection/views/job.ts"
import { idText, page_query } from "#schemas/share-protection/views/page.ts"

const params = { id: Schema.String }
const changed = Job.pipe(HttpApiSchema.status(202))
const query = {
  ...page_query,
  resource_id: Schema.optionalKey(idText(Uuid)),
  target_id: Schema.optionalKey(idText(TargetId)),
  state: Schema.optionalKey(JobState),
  job_type: Schema.optionalKey(JobType),
}

export const jobGroup = (shape: Shape) =>
  HttpApiGroup.make("jobs")
    .annotate(OpenApi.Description, "Jobs: the asynchronous operations of a project.")
    .add(
      HttpApiEndpoint.get("list", "/v1/jobs", {
        query,
        success: listOf(shape, "jobs", Job),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the jobs")
        .annotate(Needs, { rule: "share-protection:jobs:list" }),
      HttpApiEndpoint.get("get", "/v1/jobs/:id", {
        params,
        success: Job,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a job")
        .annotate(Needs, { rule: "share-protection:jobs:get" }),
      HttpApiEndpoint.post("cancel", "/v1/jobs/:id/cancel", {
        params,
        success: changed,
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Cancel a job")
        .annotate(Needs, { rule: "share-protection:jobs:cancel" }),
    )

/** Jobs of all projects. */
export const adminJobGroup = (shape: Shape) =>
  HttpApiGroup.make("admin-jobs")
    .annotate(OpenApi.Description, "Jobs of all projects.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/jobs", {
        query: { ...query, project_id: Schema.optionalKey(ProjectId) },
        success: listOf(shape, "jobs", Job),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the jobs of all projects")
        .annotate(Needs, { rule: "share-protection:admin:jobs:list" }),
      HttpApiEndpoint.get("get", "/v1/admin/jobs/:id", {
        params,
        success: Job,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a job of any project")
        .annotate(Needs, { rule: "share-protection:admin:jobs:get" }),
      HttpApiEndpoint.post("retry", "/v1/admin/jobs/:id/retry", {
        params,
        success: changed,
        error: rejections(NotFound, Conflict, RepositoryLocked),
      })
        .annotate(OpenApi.Summary, "Retry a job")
        .annotate(Needs, { rule: "share-protection:admin:jobs:retry" }),
      HttpApiEndpoint.post("cancel", "/v1/admin/jobs/:id/cancel", {
        params,
        success: changed,
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Cancel a job of any project")
        .annotate(Needs, { rule: "share-protection:admin:jobs:cancel" }),
    )
