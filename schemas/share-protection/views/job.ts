/**
 * The API's representation of a job. Source: document 2 §2 Job; DECISIONS, document 2, job fields.
 */
import { Schema, Struct } from "effect"
import { job_row } from "#schemas/share-protection/job.ts"
import { ErrorCode } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const Job = Schema.Struct({
  ...Struct.omit(job_row, ["error_code", "error_detail", "cancelled"]),
  /** The worker's latest report, in percent. */
  progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })),
  /** Null until the worker reports progress. */
  bytes_done: Schema.NullOr(Count),
  bytes_total: Schema.NullOr(Count),
  /** Null unless the state is `error`; so is `category`. */
  error: Schema.NullOr(Schema.Struct({ code: ErrorCode, detail: Reason })),
}).annotate({ identifier: "Job" })
export type Job = typeof Job.Type
