/**
 * Jobs as tenants and operators see them.
 *
 * Source: document 2 §2 Job, §3 Job, §4 rule 4; DECISIONS, document 2, job fields, cancel, retry.
 */
import type { Kysely } from "kysely"
import { JobEvent } from "#events/share-protection/job.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/share-protection/table.ts"
import { statement } from "#projections/statement.ts"
import type {
  BackupId,
  JobId,
  ProjectId,
  ShareId,
  TargetId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import type { JobState, JobType, ResourceType } from "#schemas/share-protection/job.ts"
import type { ErrorCategory, ErrorCode } from "#schemas/share-protection/rejection.ts"

export interface JobRow {
  readonly id: JobId
  readonly job_type: JobType
  readonly state: JobState
  readonly project_id: ProjectId | null
  readonly resource_type: ResourceType
  readonly resource_id: string
  readonly target_id: TargetId
  readonly share_id: ShareId | null
  readonly backup_id: BackupId | null
  /** Who has it, or had it when it ended. */
  readonly worker_id: WorkerId | null
  /** From 1. */
  readonly attempt: number
  readonly error_code: ErrorCode | null
  readonly error_detail: string | null
  readonly error_category: ErrorCategory | null
  /** Of this attempt, RFC 3339. */
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly cancelled: boolean
  readonly created_at: string
  readonly updated_at: string
}

export interface JobTables {
  readonly share_protection_job: Stored<JobRow>
}

const jobs = table<JobRow>({
  name: "share_protection_job",
  columns: {
    id: "text",
    job_type: "text",
    state: "text",
    project_id: "text?",
    resource_type: "text",
    resource_id: "text",
    target_id: "text",
    share_id: "text?",
    backup_id: "text?",
    worker_id: "text?",
    attempt: "integer",
    error_code: "text?",
    error_detail: "text?",
    error_category: "text?",
    started_at: "text?",
    finished_at: "text?",
    cancelled: "boolean",
    created_at: "text",
    updated_at: "text",
  },
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

/** What is queued for a target that is gone already has no row. */
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

/** The rows of a target's jobs go with it. Source: document 2 §4 rule 4. */
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
        ...job,
        state: "queued",
        attempt: 1,
        ...untaken,
        ...no_error,
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
    // Between the conductor and itself.
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
