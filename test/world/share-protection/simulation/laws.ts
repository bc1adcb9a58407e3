/** The laws of a simulation: invariants after each write of the log, and after it becomes idle. */
import type { BackupRecord, Law, Records, ShareRecord, TargetRecord } from "./records.ts"

const open_backup = new Set(["creating", "queued", "running"])
const open_restore = new Set(["pending", "queued", "running"])
const countsAsBackup = (status: string) => status !== "expired" && status !== "deleted"
const hasEnded = (state: string) => state === "available" || state === "error"

/** Invariants after each complete batch. */
export const holdsTogether = (records: Records, law: Law) => {
  placesAgree(records, law)
  jobsAgree(records, law)
  sharesAgree(records, law)
  countsAgree(records, law)
}

/** Lease holds and worker slots exist in pairs, and a running job has both. */
const placesAgree = ({ leases, workers, jobs }: Records, law: Law) => {
  let holds = 0
  let slots = 0
  for (const [target_id, lease] of leases) {
    for (const { job_id, worker_id, fence } of lease.holds.values()) {
      holds++
      law(jobs.get(job_id)?.target_id === target_id, "a job holds its own target's repository")
      law(workers.get(worker_id)?.slots.get(job_id) === fence, "a hold has its slot")
    }
  }
  for (const worker of workers.values()) slots += worker.slots.size
  law(holds === slots, "a slot has its hold")
  for (const [job_id, { state, started, hold, target_id }] of jobs) {
    if (hasEnded(state) || !started) continue
    const held = leases.get(target_id)?.holds.get(job_id)
    law(held !== undefined && held.fence === hold?.fence, "a job that runs holds its repository")
  }
}

/**
 * A backup or restore is open exactly while its job is, and running exactly once its job has
 * started.
 */
const jobsAgree = ({ jobs, backups, restores }: Records, law: Law) => {
  const wanted = [...jobs.values()].filter(
    ({ job_type, state }) => job_type === "undelete" && !hasEnded(state),
  )
  const undeleting = [...backups].filter(([, { status }]) => status === "undeleting")
  law(wanted.length === undeleting.length, "a backup is brought back for as long as its job is")
  for (const { job_type, resource_id, state, started } of jobs.values()) {
    if (job_type !== "backup" && job_type !== "restore") continue
    const resource = (job_type === "backup" ? backups : restores).get(resource_id)
    if (resource === undefined) return law(false, "a job has its resource")
    const { status } = resource
    const is_open = open_backup.has(status) || open_restore.has(status)
    law(is_open === !hasEnded(state), `a ${job_type} ends with its job`)
    law(!is_open || (status === "running") === started, `a ${job_type} runs with its job`)
  }
}

/** A share records its one backup in progress, and a backup records the restores that read it. */
const sharesAgree = ({ shares, backups, restores }: Records, law: Law) => {
  const under_way = [...backups].filter(([, { status }]) => open_backup.has(status))
  for (const [backup_id, { share_id }] of under_way) {
    law(shares.get(share_id)?.backup_id === backup_id, "a share knows its backup under way")
  }
  const known = [...shares.values()].filter(({ backup_id }) => backup_id !== null)
  law(known.length === under_way.length, "a share forgets its backup when that has ended")
  const read = [...backups.values()].reduce((sum, backup) => sum + backup.restores.size, 0)
  const reading = [...restores].filter(([, { status }]) => open_restore.has(status))
  for (const [restore_id, { backup_id }] of reading) {
    law(backups.get(backup_id)?.restores.has(restore_id) === true, "a backup knows its restores")
  }
  law(read === reading.length, "a backup forgets a restore when that has ended")
}

/** The counts of ledgers and targets match the existing resources. */
const countsAgree = ({ ledgers, targets, shares, backups }: Records, law: Law) => {
  const policies = [...shares.values()].flatMap(({ policy }) => policy ?? [])
  const counted = [...backups.values()].filter(({ status }) => countsAsBackup(status))
  const there = [...targets.values()].filter(({ status }) => status !== "deleted")
  const countOf = (project: string, list: ReadonlyArray<{ readonly project_id: string | null }>) =>
    list.filter(({ project_id }) => project_id === project).length
  for (const [project, ledger] of ledgers) {
    law(ledger.targets === countOf(project, there), "a ledger counts the existing targets")
    law(ledger.policies === countOf(project, policies), "a ledger counts the policies")
    law(ledger.backups === countOf(project, counted), "a ledger counts the backups")
  }
  for (const [id, target] of targets) {
    const is_its = ({ target_id }: { readonly target_id: string | null }) => target_id === id
    law(target.policies === policies.filter(is_its).length, "a target counts its policies")
    law(target.backups === counted.filter(is_its).length, "a target counts its backups")
  }
}

type Retention = NonNullable<ShareRecord["policy"]>["retention"]

const day_ms = 86_400_000

/** The number of the Monday in a day's week. */
const weekOf = (instant: string) => {
  const day = Math.floor(Date.parse(instant) / day_ms)
  return String(day - ((day + 3) % 7))
}

const periods: Readonly<Record<keyof Retention, (instant: string, index: number) => string>> = {
  keep_last: (_, index) => String(index),
  keep_daily: (instant) => instant.slice(0, 10),
  keep_weekly: weekOf,
  keep_monthly: (instant) => instant.slice(0, 7),
}

/** Ids of backups that a retention in UTC keeps, computed naively, rule by rule. */
export const keptBy = (
  retention: Retention,
  backups: ReadonlyArray<readonly [string, BackupRecord]>,
) => {
  const newest_first = backups
    .map(([id, { taken_at }]) => ({ id, taken_at }))
    .toSorted((a, b) => (a.taken_at + a.id < b.taken_at + b.id ? 1 : -1))
  const kept = new Set<string>()
  for (const [rule, periodOf] of Object.entries(periods)) {
    const wanted = retention[rule as keyof Retention] ?? 0
    const newest = new Map<string, string>()
    for (const [index, { id, taken_at }] of newest_first.entries()) {
      const period = periodOf(taken_at, index)
      if (!newest.has(period)) newest.set(period, id)
    }
    for (const id of [...newest.values()].slice(0, wanted)) kept.add(id)
    const oldest = newest_first.at(-1)
    if (oldest !== undefined && newest.size < wanted) kept.add(oldest.id)
  }
  return kept
}

/** Available backups of a policy. */
const backupsOf = ({ backups }: Records, policy_id: string) =>
  [...backups].filter(
    ([, backup]) => backup.policy_id === policy_id && backup.status === "available",
  )

/** Backups of a share that its policy does not keep and that no restore reads. */
const expendable = (records: Records, { policy }: ShareRecord) => {
  const own = (policy === null ? [] : backupsOf(records, policy.id)).filter(
    ([, backup]) => !backup.kept,
  )
  const kept = policy === null ? new Set() : keptBy(policy.retention, own)
  return own.filter(([id, { restores }]) => !kept.has(id) && restores.size === 0).map(([id]) => id)
}

/** After a batch, records the backups that policies no longer keep. */
export const noteExpendable = (records: Records) => {
  for (const share of records.shares.values()) {
    if (share.changed_at === null) continue
    share.expendable.push({ position: share.changed_at, ids: new Set(expendable(records, share)) })
    share.changed_at = null
  }
}

/** Whether a backup was expendable when its share was at the position that caused the expiry. */
export const mayExpire = (records: Records, backup_id: string, cause: number) => {
  const backup = records.backups.get(backup_id)
  const noted = backup && records.shares.get(backup.share_id)?.expendable
  return noted?.findLast(({ position }) => position <= cause)?.ids.has(backup_id) === true
}

/** Whether a target is not enrolled and waits for its tenant. */
const waitsForTenant = (target: TargetRecord | undefined) => {
  if (target?.status !== "pending") return target?.status === "error"
  return target.trust_id === null || target.vault_secret_map === null
}

/** The work that remains before the simulation is idle. */
export const unsettled = (records: Records, min_workers: number): ReadonlyArray<string> => {
  const { jobs, leases, workers, rollouts, shares, targets } = records
  const found: Array<string> = []
  for (const [id, { state, job_type, target_id }] of jobs) {
    const waits = state === "queued" && waitsForTenant(targets.get(target_id))
    if (!hasEnded(state) && !waits) found.push(`the ${job_type} job ${id} is ${state}`)
  }
  for (const [id, { holds }] of leases) if (holds.size > 0) found.push(`target ${id} is held`)
  for (const [id, { state, slots }] of workers) {
    if (slots.size > 0) found.push(`worker ${id} has ${slots.size} jobs`)
    if (state === "booting" || state === "retiring") found.push(`worker ${id} is ${state}`)
  }
  const ready = [...workers.values()].filter(({ state }) => state === "ready").length
  if (ready < min_workers) found.push(`${ready} workers are ready`)
  for (const [id, { state }] of rollouts) if (state === "running") found.push(`rollout ${id} runs`)
  for (const [id, share] of shares) {
    const late = expendable(records, share)
    if (late.length > 0) found.push(`share ${id} has ${late.length} backups that are not kept`)
  }
  return found
}
