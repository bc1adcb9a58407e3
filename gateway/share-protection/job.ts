/**
 * Handlers of jobs.
 *
 * Source: document 2 §3 Job, §4; DECISIONS, document 2, job fields, cancel, retry.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { cancelJob, type JobFacts, retryJob } from "#actors/share-protection/jobs/transitions.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import {
  callerOf,
  findExisting,
  ownedJob,
  ownedTarget,
  ownProject,
} from "#gateway/share-protection/checks/ownership.ts"
import { send } from "#gateway/share-protection/commands.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { jsonResponse, pageResponse } from "#gateway/share-protection/responses.ts"
import { jobView } from "#gateway/share-protection/view.ts"
import { findBackup } from "#projections/share-protection/backup.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import {
  findJob,
  type JobFilter,
  type JobRow,
  listJobs,
} from "#projections/share-protection/job.ts"
import { JobId, type ProjectId, type TargetId } from "#schemas/share-protection/id.ts"
import type { JobState, JobType } from "#schemas/share-protection/job.ts"
import {
  Conflict,
  NotFound,
  RepositoryLocked,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"
import { idText } from "#schemas/share-protection/views/page.ts"

interface ListQuery extends PageQuery {
  readonly resource_id?: string
  readonly target_id?: TargetId
  readonly state?: JobState
  readonly job_type?: JobType
}

const jobPage = Effect.fnUntraced(function* (query: ListQuery, own: JobFilter) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const { resource_id, target_id, state, job_type } = query
  const listed = yield* listJobs(db, { resource_id, target_id, state, job_type, ...own }, paging)
  return yield* pageResponse("jobs", listed, paging.limit, jobView)
})

/** A project's own jobs, or those of one target for the domain owner who registered it. */
const list = Effect.fnUntraced(function* (query: ListQuery) {
  const { project_id } = yield* callerOf
  if (project_id !== undefined) return yield* jobPage(query, { project_id: yield* ownProject })
  const of = query.target_id ?? query.resource_id
  if (of === undefined) {
    return yield* new ValidationError({ detail: "query.target_id: Missing key" })
  }
  const target = yield* Effect.catchIf(
    ownedTarget(of),
    (error) => error instanceof NotFound,
    () => Effect.succeed(undefined),
  )
  if (target !== undefined) return yield* jobPage(query, { target_id: target.id })
  return yield* pageResponse(
    "jobs",
    { rows: [], next_marker: null },
    (yield* pageOf(query)).limit,
    jobView,
  )
})

const factsOf = ({ id, ...row }: JobRow): JobFacts => ({ job_id: id, ...row, hold: null })

const anyJob = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  return yield* findExisting("job", idText(JobId), text, (id) => findJob(db, id))
})

const changed = Effect.fnUntraced(function* ({ id }: JobRow, position: number) {
  return jsonResponse(yield* jobView(yield* anyJob(id)), { status: 202, position })
})

const cancel = Effect.fnUntraced(function* (row: JobRow) {
  return yield* changed(row, yield* send(cancelJob(factsOf(row)), [NotFound, Conflict]))
})

const retry = Effect.fnUntraced(function* (row: JobRow) {
  const { db } = yield* ShareProtectionModel
  const backup = row.backup_id === null ? undefined : yield* findBackup(db, row.backup_id)
  const batch = retryJob(factsOf(row), { automatic: false, policy_id: backup?.policy_id ?? null })
  return yield* changed(row, yield* send(batch, [NotFound, Conflict, RepositoryLocked]))
})

export const jobHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "jobs", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      get: ({ params }) =>
        Effect.flatMap(ownedJob(params.id), jobView).pipe(Effect.map((body) => jsonResponse(body))),
      cancel: ({ params }) => Effect.flatMap(ownedJob(params.id), cancel),
    }),
  )

interface AdminListQuery extends ListQuery {
  readonly project_id?: ProjectId
}

export const adminJobHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "admin-jobs", (handlers) =>
    handlers.handleAll({
      list: ({ query }: { readonly query: AdminListQuery }) =>
        jobPage(query, { project_id: query.project_id }),
      get: ({ params }) =>
        Effect.flatMap(anyJob(params.id), jobView).pipe(Effect.map((body) => jsonResponse(body))),
      retry: ({ params }) => Effect.flatMap(anyJob(params.id), retry),
      cancel: ({ params }) => Effect.flatMap(anyJob(params.id), cancel),
    }),
  )
