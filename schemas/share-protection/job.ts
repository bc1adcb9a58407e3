/**
 * A job: one asynchronous operation on its way through a worker.
 *
 * Source: document 2 §2 Job, §3 Job; DECISIONS, document 2, job fields, cancel, retry.
 */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { Forgotten } from "#schemas/share-protection/backup.ts"
import {
  BackupId,
  JobId,
  ProjectId,
  ShareId,
  TargetId,
  Uuid,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import { ErrorCategory, ErrorCode } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const JobType = Schema.Literals([
  "backup",
  "restore",
  "target_enroll",
  "retention",
  "maintenance",
  "repo_format_upgrade",
  "undelete",
  "restore_test",
])
export type JobType = typeof JobType.Type

/** What a worker does one after the other. */
export const job_steps = [
  "provisioning_network",
  "provisioning_source",
  "connecting_repository",
  "transferring",
  "finalizing",
  "releasing",
] as const

export const JobStep = Schema.Literals(job_steps)
export type JobStep = typeof JobStep.Type

export const JobState = Schema.Literals(["queued", ...job_steps, "available", "error"])
export type JobState = typeof JobState.Type

export const ResourceType = Schema.Literals(["target", "backup", "restore"])
export type ResourceType = typeof ResourceType.Type

/** Snapshots that one retention job forgets: their ids are in its snapshot, their expiry in one
 * batch. */
export const forgotten_max = 64

/** The fields of a job, in the order of its table's columns. */
export const job_row = {
  id: JobId,
  job_type: JobType,
  state: JobState,
  /** Null for what the service does of itself on a bucket that projects share. */
  project_id: Schema.NullOr(ProjectId),
  resource_type: ResourceType,
  resource_id: Uuid,
  target_id: TargetId,
  share_id: Schema.NullOr(ShareId),
  /** What is made, or restored. */
  backup_id: Schema.NullOr(BackupId),
  /** Who has it, or had it when it ended. */
  worker_id: Schema.NullOr(WorkerId),
  /** From 1. */
  attempt: Count,
  error_code: Schema.NullOr(ErrorCode),
  error_detail: Schema.NullOr(Reason),
  error_category: Schema.NullOr(ErrorCategory),
  /** Of this attempt. */
  started_at: Schema.NullOr(Instant),
  finished_at: Schema.NullOr(Instant),
  cancelled: Schema.Boolean,
  created_at: Instant,
  updated_at: Instant,
}

export const job_fields = {
  ...Struct.pick(job_row, [
    "job_type",
    "project_id",
    "resource_type",
    "resource_id",
    "target_id",
    "share_id",
    "backup_id",
  ]),
  /** Attempts that follow a failure by themselves, when it provably wrote no snapshot. */
  max_retries: Count,
  /** For retention: what is forgotten. */
  forget: Schema.Array(Forgotten).check(Schema.isMaxLength(forgotten_max)),
}

/** Which worker, and the fence of its hold on the repository. */
const holder = { worker_id: WorkerId, fence: Count }

const failure = {
  code: ErrorCode,
  detail: Reason,
  category: ErrorCategory,
  /** Whether it is proven that the repository holds no snapshot of this job. */
  wrote_nothing: Schema.Boolean,
}

export const QueueJob = message("QueueJob", job_fields)
/** The conductor gives it to a worker, which has yet to take it. */
export const AssignJob = message("AssignJob", holder)
/**
 * The worker did not take it in time. Refused once it did, or when it was given to another;
 * without effect when it ended meanwhile, untaken.
 */
export const UnassignJob = message("UnassignJob", holder)
/** The worker takes it: queued becomes provisioning_network. */
export const StartJob = message("StartJob", holder)
/** The worker enters the next step, and only the next. */
export const AdvanceJob = message("AdvanceJob", { ...holder, to: JobStep })
/** The last step ended well. */
export const CompleteJob = message("CompleteJob", holder)
/** The worker, or the sweep for it, gives up. From another worker than the job's: refused. */
export const FailJob = message("FailJob", { ...holder, ...failure })
/** It ends before a worker took it: no capacity can be had, or its target is never enrolled. */
export const RejectJob = message("RejectJob", failure)
/** Refused once it ended. */
export const CancelJob = message("CancelJob", {})
/** A new attempt after an error. By itself: only up to max_retries, and only with wrote_nothing. */
export const RetryJob = message("RetryJob", { automatic: Schema.Boolean })
/** It waited too long: it is put before the conductor again. */
export const RecastJob = message("RecastJob", {})

export const JobCommand = Schema.Union([
  QueueJob,
  AssignJob,
  UnassignJob,
  StartJob,
  AdvanceJob,
  CompleteJob,
  FailJob,
  RejectJob,
  CancelJob,
  RetryJob,
  RecastJob,
])
export type JobCommand = typeof JobCommand.Type
