/** The view of upkeep: policies and their backups, targets, and failed jobs. */
import { Effect } from "effect"
import { Backup, backupAfter } from "#actors/share-protection/backup.ts"
import { timeOfId } from "#actors/share-protection/derived-id.ts"
import { Job, jobAfter } from "#actors/share-protection/job.ts"
import type { JobFacts } from "#actors/share-protection/jobs/transitions.ts"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import { type Log, parseStream, type Recorded } from "#events/log.ts"
import type { Forgotten } from "#schemas/share-protection/backup.ts"
import {
  BackupId,
  JobId,
  type PolicyId,
  type ProjectId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import type { JobState } from "#schemas/share-protection/job.ts"
import type { Retention } from "#schemas/share-protection/retention.ts"

/** An available backup of a policy. */
export interface AvailableBackup extends Forgotten {
  readonly project_id: ProjectId
  readonly target_id: TargetId
  readonly policy_id: PolicyId
  readonly taken_at: string
  /** Whether a restore is reading it, which keeps it. */
  readonly is_restored: boolean
  /** Whether its tenant undeleted it, which keeps it. */
  readonly kept: boolean
}

export interface UpkeepPolicy {
  readonly policy_id: PolicyId
  readonly retention: Retention
  readonly timezone: string
  readonly enabled: boolean
}

/** A failed job that may be retried automatically. */
export interface RetryableJob extends JobFacts {
  readonly position: number
  /** Epoch milliseconds. */
  readonly failed_at: number
  readonly retries: number
}

/** An enrolled target. */
export interface EnrolledTarget {
  readonly project_id: ProjectId | null
  readonly position: number
}

export interface UpkeepView {
  readonly policies: Map<ShareId, UpkeepPolicy>
  readonly backups: Map<ShareId, Map<BackupId, AvailableBackup>>
  /** Shares to check for retention, and the position of the commit that caused it. */
  readonly changed: Map<ShareId, number>
  readonly targets: Map<TargetId, EnrolledTarget>
  /**
   * When each target was enrolled or last maintained, as epoch milliseconds: the end of the last
   * such job, because a target's own last commit may be about anything.
   */
  readonly maintained: Map<TargetId, number>
  /** Open maintenance jobs. */
  readonly maintaining: Map<JobId, TargetId>
  readonly failed: Map<JobId, RetryableJob>
  /** The turn of each share's last restore test, as epoch milliseconds. */
  readonly tested: Map<ShareId, number>
  /** Open restore tests. */
  readonly testing: Set<JobId>
}

export const emptyUpkeepView = (): UpkeepView => ({
  policies: new Map(),
  backups: new Map(),
  changed: new Map(),
  targets: new Map(),
  maintained: new Map(),
  maintaining: new Map(),
  failed: new Map(),
  tested: new Map(),
  testing: new Set(),
})

type Reader = (
  log: Log["Service"],
  view: UpkeepView,
  recorded: Recorded,
  id: string,
) => Effect.Effect<void, Effect.Error<ReturnType<Log["Service"]["load"]>>>

const foldPolicy: Reader = Effect.fnUntraced(function* (log, view, recorded, id) {
  const share_id = ShareId.make(id)
  const { policy } = yield* policyAfter(log, recorded)
  view.changed.set(share_id, recorded.position)
  if (policy === null) {
    view.policies.delete(share_id)
    return
  }
  const { id: policy_id, retention, timezone, enabled } = policy
  view.policies.set(share_id, { policy_id, retention, timezone, enabled })
})

const foldBackup: Reader = Effect.fnUntraced(function* (log, view, recorded, id) {
  const backup_id = BackupId.make(id)
  const backup = yield* backupAfter(log, recorded)
  const { state, share_id, project_id, target_id, policy_id, restores } = backup
  const { engine_snapshot_id, taken_at, kept } = backup
  const known = view.backups.get(share_id) ?? new Map<BackupId, AvailableBackup>()
  if (state === "available" && policy_id !== null && engine_snapshot_id !== null) {
    const about = { backup_id, engine_snapshot_id, project_id, target_id, policy_id, kept }
    known.set(backup_id, { ...about, taken_at: taken_at ?? "", is_restored: restores.length > 0 })
    view.backups.set(share_id, known)
  } else if (!known.delete(backup_id)) return
  view.changed.set(share_id, recorded.position)
})

const foldTarget: Reader = Effect.fnUntraced(function* (log, view, recorded, id) {
  const target_id = TargetId.make(id)
  const { status, project_id } = yield* targetAfter(log, recorded)
  if (status === "available")
    view.targets.set(target_id, { project_id, position: recorded.position })
  else view.targets.delete(target_id)
  if (status === "deleted") view.maintained.delete(target_id)
})

const hasEnded = (state: JobState) => state === "available" || state === "error"

const foldJob: Reader = Effect.fnUntraced(function* (log, view, recorded, id) {
  const job_id = JobId.make(id)
  const { position } = recorded
  const at = Date.parse(recorded.commit.at)
  const { state, cancelled, may_have_written, retries, max_retries, ...job } = yield* jobAfter(
    log,
    recorded,
  )
  const { job_type, resource_id, target_id, project_id, share_id, backup_id } = job
  if (job_type === "restore_test" && share_id !== null) {
    view.tested.set(share_id, Math.max(timeOfId(job_id), view.tested.get(share_id) ?? 0))
    if (hasEnded(state)) view.testing.delete(job_id)
    else view.testing.add(job_id)
  }
  if (job_type === "maintenance" && !hasEnded(state)) {
    view.maintaining.set(job_id, target_id)
  } else view.maintaining.delete(job_id)
  const is_enrolled = job_type === "target_enroll" && state === "available"
  const is_maintained = job_type === "maintenance" && !view.maintaining.has(job_id)
  if (is_enrolled || is_maintained) {
    view.maintained.set(target_id, Math.max(at, view.maintained.get(target_id) ?? 0))
  }
  if (state !== "error" || cancelled || may_have_written || retries >= max_retries) {
    view.failed.delete(job_id)
    return
  }
  const of = { project_id, share_id, backup_id, hold: null }
  const facts = { job_id, job_type, resource_id, target_id, ...of }
  view.failed.set(job_id, { ...facts, position, failed_at: at, retries })
})

const readers: Readonly<Record<string, Reader>> = {
  [Policy.name]: foldPolicy,
  [Backup.name]: foldBackup,
  [Target.name]: foldTarget,
  [Job.name]: foldJob,
}

export const foldUpkeep = (log: Log["Service"], view: UpkeepView, recorded: Recorded) => {
  const { name, id } = parseStream(recorded.stream)
  return readers[name]?.(log, view, recorded, id) ?? Effect.void
}
