/** A job as the API shows it. Source: document 2 §2 Job; DECISIONS, document 2, job fields. */
import { Schema, Struct } from "effect"
import { job_row } from "#schemas/share-protection/job.ts"
import { ErrorCode } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const Job = Schema.Struct({
  ...Struct.omit(job_row, ["error_code", "error_detail", "cancelled"]),
  /** Percent, as the worker told last. */
  progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })),
  /** Null as long as nothing was told. */
  bytes_done: Schema.NullOr(Count),
  bytes_total: Schema.NullOr(Count),
  /** Null unless its state is `error`, as its category is. */
  error: Schema.NullOr(Schema.Struct({ code: ErrorCode, detail: Reason })),
}).annotate({ identifier: "Job" })
export type Job = typeof Job.Type
