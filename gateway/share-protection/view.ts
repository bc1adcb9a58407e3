/** Rows as the API returns them, apart from what differs between shapes. */
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

/** A job, with the last progress that its worker reported. */
export const jobView = (row: JobRow): Effect.Effect<Job, never, LiveWorkers> =>
  Effect.map(LiveWorkers, ({ progressOf }) => {
    const { error_code: code, error_detail: detail } = row
    const live = progressOf(row.id)
    const progress = row.state === "available" ? 100 : (live?.progress ?? 0)
    return {
      ...Struct.omit(row, ["error_code", "error_detail", "cancelled"]),
      progress: row.state === "queued" ? 0 : progress,
      // The worker's last report is slightly older than the end.
      bytes_done: (row.state === "available" && live?.bytes_total) || (live?.bytes_done ?? null),
      // The worker reports 0 until it knows the total.
      bytes_total: live?.bytes_total || null,
      error: code === null ? null : { code, detail: detail ?? "" },
    }
  })

/** A worker, with its last heartbeat. */
export const workerView = (row: WorkerRow): Effect.Effect<Worker, never, LiveWorkers> =>
  Effect.map(LiveWorkers, ({ find }) => {
    const heard_at = find(row.id)?.received_at
    return {
      ...row,
      heartbeat_at:
        heard_at === undefined ? null : DateTime.formatIso(DateTime.makeUnsafe(heard_at)),
    }
  })
