/** Rows as the API shows them, but for what each shape words in its own way. */
import { DateTime, Effect, Struct } from "effect"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import type { BackupRow } from "#projections/share-protection/backup.ts"
import type { JobRow } from "#projections/share-protection/job.ts"
import type { PolicyRow } from "#projections/share-protection/policy.ts"
import type { WorkerRow } from "#projections/share-protection/worker.ts"
import type { Job } from "#schemas/share-protection/views/job.ts"
import { hidden } from "#schemas/share-protection/views/policy.ts"
import type { Worker } from "#schemas/share-protection/worker.ts"

export const policyView = (row: PolicyRow) => Struct.omit(row, hidden)

export const backupView = (row: BackupRow) => ({
  ...Struct.omit(row, ["target_id", "domain_id"]),
  crash_consistent: row.crash_consistent ?? false,
})

/** A job, with what its worker said of it last. */
export const jobView = (row: JobRow): Effect.Effect<Job, never, LiveWorkers> =>
  Effect.map(LiveWorkers, ({ progressOf }) => {
    const { error_code: code, error_detail: detail } = row
    const said = progressOf(row.id)
    const told = row.state === "available" ? 100 : (said?.progress ?? 0)
    return {
      ...Struct.omit(row, ["error_code", "error_detail", "cancelled"]),
      progress: row.state === "queued" ? 0 : told,
      // Its worker spoke last a moment before the end.
      bytes_done: (row.state === "available" && said?.bytes_total) || (said?.bytes_done ?? null),
      // The worker says 0 while it does not know.
      bytes_total: said?.bytes_total || null,
      error: code === null ? null : { code, detail: detail ?? "" },
    }
  })

/** A worker, with when it was heard last. */
export const workerView = (row: WorkerRow): Effect.Effect<Worker, never, LiveWorkers> =>
  Effect.map(LiveWorkers, ({ find }) => {
    const heard_at = find(row.id)?.received_at
    return {
      ...row,
      heartbeat_at:
        heard_at === undefined ? null : DateTime.formatIso(DateTime.makeUnsafe(heard_at)),
    }
  })
