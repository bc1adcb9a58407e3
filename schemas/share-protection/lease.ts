/**
 * A repository's lease: who may write to it.
 *
 * The fences of its holds increase, so a lower one identifies a worker that was presumed dead and
 * replaced. Source: document 2 §7 svc.repository_locked; DESIGN of the running system, 7.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

/** `write` allows readers, `read` allows readers and one writer, `exclusive` allows none. */
export const LeaseMode = Schema.Literals(["read", "write", "exclusive"])
export type LeaseMode = typeof LeaseMode.Type

/** Maximum number of concurrent holds of a repository: they are in its snapshot. */
export const lease_holds_max = 50

/** The fence must be the highest one so far plus one; otherwise the caller's view is outdated. */
export const AcquireLease = message("AcquireLease", {
  job_id: JobId,
  worker_id: WorkerId,
  mode: LeaseMode,
  fence: Count,
})
/** No effect if the hold no longer exists. */
export const ReleaseLease = message("ReleaseLease", { job_id: JobId, fence: Count })
/** Removes the hold of a worker that is proven dead. No effect if it no longer exists. */
export const BreakLease = message("BreakLease", { job_id: JobId, fence: Count, reason: Reason })
/** The target is deleted. Rejected while holds exist; later acquisitions are rejected. */
export const CloseLease = message("CloseLease", {})

export const LeaseCommand = Schema.Union([AcquireLease, ReleaseLease, BreakLease, CloseLease])
export type LeaseCommand = typeof LeaseCommand.Type
