/**
 * Upkeep: expires backups that their policies do not keep, queues maintenance and restore tests,
 * and retries failed jobs that provably wrote nothing.
 *
 * Source: document 2 §2 Policy, §3 Backup, §8 conductor.maintenance_interval_seconds; DECISIONS,
 * document 2, automatic retry.
 */
import { DateTime, Effect } from "effect"
import { Unavailable } from "#actors/commands.ts"
import { type Caused, type Due, mergeDue, type Process } from "#actors/process.ts"
import { Backup, backupAfter } from "#actors/share-protection/backup.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import { retryJob } from "#actors/share-protection/jobs/transitions.ts"
import { restoreTests } from "#actors/share-protection/processes/restore-testing.ts"
import { retain } from "#actors/share-protection/processes/retention.ts"
import {
  type AvailableBackup,
  emptyUpkeepView,
  foldUpkeep,
  type RetryableJob,
  type UpkeepView,
} from "#actors/share-protection/processes/upkeep-view.ts"
import { expireBackups, queueTargetJob } from "#actors/share-protection/requests.ts"
import { Log } from "#events/log.ts"
import { type BackupId, JobId, type ShareId } from "#schemas/share-protection/id.ts"
import { forgotten_max } from "#schemas/share-protection/job.ts"

export interface UpkeepOptions {
  readonly maintenance_interval_seconds: number
  /** 0 disables restore tests. */
  readonly restore_test_interval_seconds: number
}

/** Pause before the first retry in milliseconds; it doubles with each retry. */
const retry_ms = 10_000

/** Failed jobs are retried only within this time, a day, in milliseconds. */
const retry_window_ms = 86_400_000

const instantOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** Expires the backups that a share's policy does not keep, in batches per target and project. */
const expiries = (
  view: UpkeepView,
  share_id: ShareId,
  position: number,
  now: number,
): ReadonlyArray<Caused> => {
  const policy = view.policies.get(share_id)
  if (policy === undefined) return []
  const own = [...(view.backups.get(share_id)?.values() ?? [])].filter(
    ({ policy_id }) => policy_id === policy.policy_id,
  )
  const expiring = new Set(retain(own, policy.retention, policy.timezone).expire)
  const expired = own.filter(
    ({ backup_id, is_restored }) => expiring.has(backup_id) && !is_restored,
  )
  const groups = Map.groupBy(expired, ({ project_id, target_id }) => `${project_id} ${target_id}`)
  return [...groups.values()]
    .flatMap((group) => chunks(group))
    .map((group) => {
      const command_id = `expire-${share_id}-${position}-${group[0]?.backup_id}`
      return {
        command_id,
        cause: String(position),
        batch: expireAll(group, JobId.make(derivedId(command_id, instantOf(now)))),
      }
    })
}

const chunks = (backups: ReadonlyArray<AvailableBackup>) =>
  Array.from({ length: Math.ceil(backups.length / forgotten_max) }, (_, i) =>
    backups.slice(i * forgotten_max, (i + 1) * forgotten_max),
  )

/** All backups of a group have the same project and target. */
const expireAll = (group: ReadonlyArray<AvailableBackup>, job_id: JobId) => {
  const [first] = group
  if (first === undefined) return []
  const { project_id, target_id } = first
  const backups = group.map(({ backup_id, engine_snapshot_id }) => ({
    backup_id,
    engine_snapshot_id,
  }))
  return expireBackups({ project_id, target_id, backups, job_id })
}

/** One maintenance job per repository and interval. */
const maintenance = (
  { targets, maintained, maintaining }: UpkeepView,
  interval_ms: number,
  now: number,
): Due => {
  const busy = new Set(maintaining.values())
  const items: Array<Caused> = []
  let next = Infinity
  for (const [target_id, { project_id, position }] of targets) {
    const since = maintained.get(target_id)
    if (since === undefined || busy.has(target_id)) continue
    const at = since + interval_ms
    if (at > now) {
      next = Math.min(next, at)
      continue
    }
    const command_id = `maintain-${target_id}-${since}`
    const job_id = JobId.make(derivedId(command_id, instantOf(at)))
    const batch = [queueTargetJob(job_id, "maintenance", target_id, project_id)]
    items.push({ command_id, cause: String(position), batch })
  }
  return { now: items, next }
}

const retries = (view: UpkeepView, log: Log["Service"], now: number): Due => {
  const items: Array<Caused> = []
  let next = Infinity
  for (const job of view.failed.values()) {
    const at = job.failed_at + retry_ms * 2 ** job.retries
    if (at > now) next = Math.min(next, at)
    else if (now < job.failed_at + retry_window_ms) items.push(retry(view, log, job))
  }
  return { now: items, next }
}

const retry = ({ policies }: UpkeepView, log: Log["Service"], job: RetryableJob): Caused => ({
  command_id: `retry-${job.job_id}-${job.position}`,
  cause: String(job.position),
  batch: Effect.map(policyOf(log, job.backup_id), (own) => {
    const present = job.share_id && policies.get(job.share_id)?.policy_id
    // The policy of the backup may have been replaced by another.
    return retryJob(job, { automatic: true, policy_id: own === present ? own : null })
  }),
})

/** The policy of a backup, if any. */
const policyOf = Effect.fnUntraced(
  function* (log: Log["Service"], backup_id: BackupId | null) {
    if (backup_id === null) return null
    const recorded = yield* log.load(`${Backup.name}.${backup_id}`)
    return recorded === undefined ? null : (yield* backupAfter(log, recorded)).policy_id
  },
  Effect.mapError(({ detail }) => new Unavailable({ detail })),
)

/** Runs on a single conductor. */
export const upkeep = ({
  maintenance_interval_seconds,
  restore_test_interval_seconds,
}: UpkeepOptions): Process => ({
  name: "share-protection-upkeep",
  part: "share-protection",
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    const view = emptyUpkeepView()
    const interval_ms = maintenance_interval_seconds * 1000
    /** Pending expirations of each share, until one of its commits changes them. */
    const expirations = new Map<ShareId, ReadonlyArray<Caused>>()
    return {
      fold: (recorded) => foldUpkeep(log, view, recorded),
      due: (now) => {
        for (const [share_id, position] of view.changed) {
          const expiring = expiries(view, share_id, position, now)
          if (expiring.length > 0) expirations.set(share_id, expiring)
          else expirations.delete(share_id)
        }
        view.changed.clear()
        return mergeDue(
          { now: [...expirations.values()].flat() },
          maintenance(view, interval_ms, now),
          restoreTests(view, restore_test_interval_seconds * 1000, now),
          retries(view, log, now),
        )
      },
    }
  }),
})
