/**
 * Jobs as tenants and operators see them.
 *
 * Source: document 2 §2 Job, §3 Job, §4 rule 4; DECISIONS, document 2, job fields, cancel, retry.
 */
import type { Schema } from "effect"
import type { Kysely } from "kysely"
import { JobEvent } from "#events/share-protection/job.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { statement } from "#projections/statement.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import type { JobId, ProjectId, TargetId } from "#schemas/share-protection/id.ts"
import { type JobState, type JobType, job_row } from "#schemas/share-protection/job.ts"

export type JobRow = Schema.Struct<typeof job_row>["Type"]

export interface JobTables {
  readonly share_protection_job: Stored<JobRow>
}

const jobs = table({
  name: "share_protection_job",
  fields: job_row,
  indexes: [
    ["resource_id"],
    ["target_id", "state"],
    ["target_id"],
    ["project_id", "state"],
    ["project_id"],
    ["state"],
    ["job_type"],
  ],
})

const no_error = { error_code: null, error_detail: null, error_category: null }
/** Source: DECISIONS, document 2, cancel. */
const cancelled = {
  error_code: "svc.conflict",
  error_detail: "cancelled",
  error_category: "tenant_action_required",
} as const
const untaken = { worker_id: null, started_at: null, finished_at: null, cancelled: false }

/** A job queued for a target that was already deleted has no row. */
const removeIfOrphan = statement<{
  share_protection_job: JobRow
  share_protection_target: { id: string }
}>()<{ readonly id: JobId }>((db, { id }) =>
  db
    .deleteFrom("share_protection_job")
    .where("id", "=", id)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("share_protection_target")
            .select("share_protection_target.id")
            .whereRef("share_protection_target.id", "=", "share_protection_job.target_id"),
        ),
      ),
    ),
)

/** The rows of a target's jobs are deleted with it. Source: document 2 §4 rule 4. */
export const removeJobsOf = statement<JobTables>()<Pick<JobRow, "target_id">>((db, { target_id }) =>
  db.deleteFrom("share_protection_job").where("target_id", "=", target_id),
)

const project = (event: JobEvent, { id: job_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = job_id as JobId
  const update = (values: Partial<JobRow>) => [jobs.update(id, { ...values, updated_at: at })]
  return JobEvent.match(event, {
    JobQueued: ({ type: _, max_retries: _retries, forget: _forget, ...job }) => [
      jobs.insert({
        id,
        ...nullsOf(job_row),
        ...job,
        state: "queued",
        attempt: 1,
        cancelled: false,
        created_at: at,
        updated_at: at,
      }),
      removeIfOrphan({ id }),
    ],
    JobAssigned: ({ worker_id }) => update({ worker_id }),
    JobUnassigned: () => update({ worker_id: null }),
    JobStarted: () => update({ state: "provisioning_network", started_at: at }),
    JobAdvanced: ({ to }) => update({ state: to }),
    JobCompleted: () => update({ state: "available", finished_at: at }),
    JobFailed: ({ code, detail, category }) =>
      update({
        state: "error",
        finished_at: at,
        error_code: code,
        error_detail: detail,
        error_category: category,
      }),
    JobCancelled: () => update({ state: "error", finished_at: at, cancelled: true, ...cancelled }),
    JobRetried: ({ attempt }) => update({ state: "queued", attempt, ...untaken, ...no_error }),
    // Internal to the conductor.
    JobRecast: () => [],
  })
}

export const job = projection<JobTables, JobEvent>({
  part: "share-protection.job",
  event: JobEvent,
  create: ({ schema }) => jobs.create(schema),
  project,
})

export const findJob = (db: Kysely<JobTables>, id: JobId) => findRow(db, jobs, id)

export interface JobFilter {
  readonly project_id?: ProjectId | undefined
  readonly resource_id?: string | undefined
  readonly target_id?: TargetId | undefined
  readonly state?: JobState | undefined
  readonly job_type?: JobType | undefined
}

/** Newest first. */
export const listJobs = (db: Kysely<JobTables>, filter: JobFilter, page: Page) =>
  listRows(db, jobs, { filter: { ...filter }, order: "desc" }, page)
