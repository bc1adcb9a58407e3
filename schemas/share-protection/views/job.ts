/**
 * The API's representation of a job. Source: document 2 §2 Job; DECISIONS, document 2, job fields.
 */
import { Schema, Struct } from "effect"
import { job_row } from "#schemas/share-protection/job.ts"
import { ErrorCode } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

const JobError = Schema.Struct({
  code: ErrorCode.annotateKey({ description: "The error code, from the same list as for HTTP." }),
  detail: Reason.annotateKey({
    description: "One sentence about the cause. `cancelled` if the job was cancelled.",
  }),
})

export const Job = Schema.Struct({
  ...Struct.omit(job_row, ["error_code", "error_detail", "cancelled"]),
  progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })).annotateKey({
    description: "Progress in percent, as last reported by the worker.",
  }),
  bytes_done: Schema.NullOr(Count).annotateKey({
    description: "Bytes processed so far. Null until the worker reports progress.",
  }),
  bytes_total: Schema.NullOr(Count).annotateKey({
    description: "Bytes to process in total. Null until the worker knows the total.",
  }),
  error: Schema.NullOr(JobError).annotateKey({
    description: "Why the job failed. Null unless the state is `error`.",
  }),
}).annotate({ identifier: "Job", description: "An asynchronous operation that a worker runs." })
export type Job = typeof Job.Type
