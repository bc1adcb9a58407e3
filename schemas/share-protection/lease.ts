/**
 * A repository's lease: who may write into it.
 *
 * Each hold has a fence, rising: whoever shows a lower one was thought dead and replaced.
 * Source: document 2 §7 svc.repository_locked; DESIGN of the running system, 7.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

/** `write` beside readers, `read` beside one writer and other readers, `exclusive` alone. */
export const LeaseMode = Schema.Literals(["read", "write", "exclusive"])
export type LeaseMode = typeof LeaseMode.Type

/** Holds of one repository at the same time: they are in its snapshot. */
export const lease_holds_max = 50

/** The new hold's fence must be one above the highest that there was: else the asker is behind. */
export const AcquireLease = message("AcquireLease", {
  job_id: JobId,
  worker_id: WorkerId,
  mode: LeaseMode,
  fence: Count,
})
/** Without effect when that hold is not there any more. */
export const ReleaseLease = message("ReleaseLease", { job_id: JobId, fence: Count })
/** Takes a hold from a worker that is proven dead. Without effect when it is not there any more. */
export const BreakLease = message("BreakLease", { job_id: JobId, fence: Count, reason: Reason })
/** The target goes. Refused while there is a hold; nothing acquires it after that. */
export const CloseLease = message("CloseLease", {})

export const LeaseCommand = Schema.Union([AcquireLease, ReleaseLease, BreakLease, CloseLease])
export type LeaseCommand = typeof LeaseCommand.Type
