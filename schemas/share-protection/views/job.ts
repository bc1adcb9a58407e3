/** A job as the API shows it. Source: document 2 §2 Job; DECISIONS, document 2, job fields. */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { JobState, job_fields } from "#schemas/share-protection/job.ts"
import { ErrorCategory, ErrorCode } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

const fields = Struct.omit(job_fields, ["max_retries", "forget"])

export const Job = Schema.Struct({
  id: JobId,
  ...fields,
  state: JobState,
  /** Percent, as the worker told last. */
  progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })),
  /** Null as long as nothing was told. */
  bytes_done: Schema.NullOr(Count),
  bytes_total: Schema.NullOr(Count),
  worker_id: Schema.NullOr(WorkerId),
  attempt: Count,
  /** Both are null unless its state is `error`. */
  error: Schema.NullOr(Schema.Struct({ code: ErrorCode, detail: Reason })),
  error_category: Schema.NullOr(ErrorCategory),
  started_at: Schema.NullOr(Instant),
  finished_at: Schema.NullOr(Instant),
  created_at: Instant,
  updated_at: Instant,
}).annotate({ identifier: "Job" })
export type Job = typeof Job.Type
