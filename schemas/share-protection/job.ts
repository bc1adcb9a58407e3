/**
 * A job: one asynchronous operation that a worker runs.
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
import { ErrorCode } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"
import { ErrorCategory } from "#schemas/system/rejection.ts"

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

/** The steps of a worker, in order. */
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

/**
 * Maximum number of snapshots in a retention job: their ids are in its snapshot, and their
 * expirations in one batch.
 */
export const forgotten_max = 64

/** The fields of a job, in the order of its table's columns. */
export const job_row = {
  id: JobId,
  job_type: JobType.annotateKey({ description: "Type of the job." }),
  state: JobState.annotateKey({
    description:
      "`queued` until a worker starts the job, then its steps in the order of this list. " +
      "`available` (success) and `error` (failure) are final, unless an operator retries the job.",
  }),
  project_id: Schema.NullOr(ProjectId).annotateKey({
    description: "Project of the resource. Null for maintenance of a bucket that projects share.",
  }),
  resource_type: ResourceType.annotateKey({ description: "Type of the resource." }),
  resource_id: Uuid.annotateKey({
    description: "ID of the target, backup or restore that the job works on.",
  }),
  target_id: TargetId.annotateKey({ description: "ID of the target whose repository is used." }),
  share_id: Schema.NullOr(ShareId).annotateKey({
    description: "ID of the share that is read or written. Null if the job uses none.",
  }),
  backup_id: Schema.NullOr(BackupId).annotateKey({
    description: "ID of the backup that the job makes or restores. Null for other jobs.",
  }),
  worker_id: Schema.NullOr(WorkerId).annotateKey({
    description: "ID of the current or last worker. Null before a worker was assigned.",
  }),
  attempt: Count.annotateKey({ description: "Number of the current attempt, from 1." }),
  error_code: Schema.NullOr(ErrorCode),
  error_detail: Schema.NullOr(Reason),
  error_category: Schema.NullOr(ErrorCategory).annotateKey({
    description: "The party that can resolve the error. Null unless the state is `error`.",
  }),
  started_at: Schema.NullOr(Instant).annotateKey({
    description: "Start of the current attempt. Null while the job is queued.",
  }),
  finished_at: Schema.NullOr(Instant).annotateKey({
    description: "End of the job. Null until it has ended.",
  }),
  cancelled: Schema.Boolean,
  created_at: Instant.annotateKey({ description: "Time of creation." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change of state." }),
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
  /**
   * Maximum number of automatic retries, which require that the failure provably wrote no snapshot.
   */
  max_retries: Count,
  /** For retention: the backups to forget. */
  forget: Schema.Array(Forgotten).check(Schema.isMaxLength(forgotten_max)),
}

/** The worker and the fence of its hold on the repository. */
const holder = { worker_id: WorkerId, fence: Count }

const failure = {
  code: ErrorCode,
  detail: Reason,
  category: ErrorCategory,
  /** Whether the repository provably has no snapshot of this job. */
  wrote_nothing: Schema.Boolean,
}

export const QueueJob = message("QueueJob", job_fields)
/** Assigns the job to a worker, which has not started it yet. */
export const AssignJob = message("AssignJob", holder)
/**
 * The worker did not start it in time. Rejected if it has, or if the job was reassigned; no effect
 * if the job ended unstarted.
 */
export const UnassignJob = message("UnassignJob", holder)
/** The worker starts it: queued becomes provisioning_network. */
export const StartJob = message("StartJob", holder)
/** The worker enters the next step; other steps are rejected. */
export const AdvanceJob = message("AdvanceJob", { ...holder, to: JobStep })
/** The last step succeeded. */
export const CompleteJob = message("CompleteJob", holder)
/** The worker, or the sweep on its behalf, gives up. Rejected from another worker. */
export const FailJob = message("FailJob", { ...holder, ...failure })
/** Ends the job before a worker started it: no capacity, or its target is never enrolled. */
export const RejectJob = message("RejectJob", failure)
/** Rejected after the job has ended. */
export const CancelJob = message("CancelJob", {})
/**
 * Starts a new attempt after an error. Automatic retries need wrote_nothing and stay within
 * max_retries.
 */
export const RetryJob = message("RetryJob", { automatic: Schema.Boolean })
/** The job waited too long and returns to the conductor. */
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
