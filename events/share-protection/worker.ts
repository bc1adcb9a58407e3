/** Events of a worker. Stream: share-protection.worker.<id>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import { Reason } from "#schemas/share-protection/text.ts"
import { AssignWorkerJob, BootWorker, registration } from "#schemas/share-protection/worker.ts"

const boot = Struct.omit(BootWorker.fields, ["type"])
const slot = Struct.omit(AssignWorkerJob.fields, ["type"])

export const WorkerBootStarted = message("WorkerBootStarted", boot)
export const WorkerBootFailed = message("WorkerBootFailed", { reason: Reason })
/** From here it takes jobs. */
export const WorkerRegistered = message("WorkerRegistered", registration)
export const WorkerJobAssigned = message("WorkerJobAssigned", slot)
export const WorkerJobReleased = message("WorkerJobReleased", slot)
/** From here it takes no new job; running jobs finish. */
export const WorkerDrainStarted = message("WorkerDrainStarted", {})
/** It takes jobs again: a rollout failed. */
export const WorkerUndrained = message("WorkerUndrained", {})
/** It is marked for deletion, and retired when its last job ends. */
export const WorkerRetirementStarted = message("WorkerRetirementStarted", {})
export const WorkerRetired = message("WorkerRetired", {})
export const WorkerDied = message("WorkerDied", { reason: Reason })

export const WorkerEvent = Schema.Union([
  WorkerBootStarted,
  WorkerBootFailed,
  WorkerRegistered,
  WorkerJobAssigned,
  WorkerJobReleased,
  WorkerDrainStarted,
  WorkerUndrained,
  WorkerRetirementStarted,
  WorkerRetired,
  WorkerDied,
]).pipe(Schema.toTaggedUnion("type"))
export type WorkerEvent = typeof WorkerEvent.Type
