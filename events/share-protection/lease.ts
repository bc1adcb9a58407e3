/** Events of a repository's lease. Stream: share-protection.lease.<target id>. */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { LeaseMode } from "#schemas/share-protection/lease.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const LeaseAcquired = message("LeaseAcquired", {
  job_id: JobId,
  worker_id: WorkerId,
  mode: LeaseMode,
  fence: Count,
})
export const LeaseReleased = message("LeaseReleased", { job_id: JobId, fence: Count })
/** Its holder is proven dead. */
export const LeaseBroken = message("LeaseBroken", {
  job_id: JobId,
  fence: Count,
  reason: Reason,
})
/** The target was deleted. */
export const LeaseClosed = message("LeaseClosed", {})

export const LeaseEvent = Schema.Union([
  LeaseAcquired,
  LeaseReleased,
  LeaseBroken,
  LeaseClosed,
]).pipe(Schema.toTaggedUnion("type"))
export type LeaseEvent = typeof LeaseEvent.Type
