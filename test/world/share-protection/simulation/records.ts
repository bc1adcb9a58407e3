/**
 * Records of a simulation, folded from the events alone, without any code of the implementation. An
 * event that should be impossible is reported as a broken law.
 */
import { Struct } from "effect"
import type { BackupEvent } from "#events/share-protection/backup.ts"
import type { FleetEvent } from "#events/share-protection/fleet.ts"
import type { JobEvent } from "#events/share-protection/job.ts"
import type { LeaseEvent } from "#events/share-protection/lease.ts"
import type { LedgerEvent } from "#events/share-protection/ledger.ts"
import type { PolicyEvent } from "#events/share-protection/policy.ts"
import type { RestoreEvent } from "#events/share-protection/restore.ts"
import type { RolloutEvent } from "#events/share-protection/rollout.ts"
import type { TargetEvent } from "#events/share-protection/target.ts"
import type { WorkerEvent } from "#events/share-protection/worker.ts"

type Of<Event extends { readonly type: string }, Type extends Event["type"]> = Omit<
  Extract<Event, { readonly type: Type }>,
  "type"
>

interface Hold {
  readonly worker_id: string
  readonly fence: number
}

export interface JobRecord extends Of<JobEvent, "JobQueued"> {
  state: string
  hold: Hold | null
  started: boolean
  attempt: number
  retries: number
  /** Whether its last failure wrote nothing. */
  wrote_nothing: boolean
  cancelled: boolean
}

export interface WorkerRecord {
  state: string
  capacity_slots: number
  domain_id: string | null
  image: string | null
  /** Fences of its running jobs, by job. */
  readonly slots: Map<string, number>
}

export interface LeaseRecord {
  /** Holds by job. */
  readonly holds: Map<string, Of<LeaseEvent, "LeaseAcquired">>
  fence: number
  is_closed: boolean
}

export interface BackupRecord extends Of<BackupEvent, "BackupRequested"> {
  status: string
  engine_snapshot_id: string | null
  taken_at: string
  /** Whether it was undeleted. */
  kept: boolean
  readonly restores: Set<string>
}

export interface RestoreRecord extends Of<RestoreEvent, "RestoreRequested"> {
  status: string
}

export interface TargetRecord extends Of<TargetEvent, "TargetCreated"> {
  status: string
  format_job_id: string | null
  /** Registered references. */
  policies: number
  backups: number
  /** Empty while its locks are unknown. */
  protected_until: string
}

export type PolicyRecord = Of<PolicyEvent, "PolicyDefined">

export interface ShareRecord {
  policy: PolicyRecord | null
  backup_id: string | null
  last_tick: string | null
  /**
   * First position at which its policy or backups changed since the last record; null: unchanged.
   */
  changed_at: number | null
  /** Backups that the policy does not keep, from each position that changed something. */
  readonly expendable: Array<{ readonly position: number; readonly ids: ReadonlySet<string> }>
}

export interface Records {
  readonly jobs: Map<string, JobRecord>
  readonly workers: Map<string, WorkerRecord>
  readonly leases: Map<string, LeaseRecord>
  readonly backups: Map<string, BackupRecord>
  readonly restores: Map<string, RestoreRecord>
  readonly targets: Map<string, TargetRecord>
  /** The state of shares, by id. */
  readonly shares: Map<string, ShareRecord>
  /** Counts by project. */
  readonly ledgers: Map<string, Record<LedgerEvent["what"], number>>
  readonly rollouts: Map<string, { state: string; readonly replaced: Array<string> }>
  readonly fleet: { booted_at: number; readonly failed_at: Array<number> }
}

export const noRecords = (): Records => ({
  jobs: new Map(),
  workers: new Map(),
  leases: new Map(),
  backups: new Map(),
  restores: new Map(),
  targets: new Map(),
  shares: new Map(),
  ledgers: new Map(),
  rollouts: new Map(),
  fleet: { booted_at: -Infinity, failed_at: [] },
})

/** Reports a broken law if the condition is false. */
export type Law = (holds: boolean, law: string) => void

const steps = [
  "provisioning_network",
  "provisioning_source",
  "connecting_repository",
  "transferring",
  "finalizing",
  "releasing",
]

/** An event of one aggregate. */
export interface Happened<Event> {
  readonly id: string
  readonly event: Event
  /** The position in the log. */
  readonly position: number
}

const isSame = (hold: Hold | null, other: Partial<Record<keyof Hold, unknown>>) =>
  hold !== null && hold.worker_id === other.worker_id && hold.fence === other.fence

export const takeJob = ({ jobs }: Records, law: Law, { id, event }: Happened<JobEvent>) => {
  if (event.type === "JobQueued") {
    law(!jobs.has(id), "a job is queued once")
    const job = Struct.omit(event, ["type"])
    const begin = { state: "queued", hold: null, started: false, attempt: 1, retries: 0 }
    jobs.set(id, { ...job, ...begin, wrote_nothing: false, cancelled: false })
    return
  }
  const job = jobs.get(id)
  if (job === undefined) return law(false, `${event.type} of a job that was never queued`)
  const has_ended = job.state === "available" || job.state === "error"
  switch (event.type) {
    case "JobAssigned":
      law(job.state === "queued" && job.hold === null, "a job is given to one worker at a time")
      job.hold = { worker_id: event.worker_id, fence: event.fence }
      return
    case "JobUnassigned":
      law(job.state === "queued" && isSame(job.hold, event), "a job that began is not unassigned")
      job.hold = null
      return
    case "JobStarted":
      law(job.state === "queued" && isSame(job.hold, event), "only its worker begins a job")
      Object.assign(job, { state: steps[0], started: true })
      return
    case "JobAdvanced": {
      const next = steps[steps.indexOf(job.state) + 1]
      law(next === event.to && isSame(job.hold, event), "a job goes on step by step")
      job.state = event.to
      return
    }
    case "JobCompleted":
      law(job.state === "releasing" && isSame(job.hold, event), "a job ends after its last step")
      job.state = "available"
      return
    case "JobFailed": {
      const is_its_own = event.worker_id === null ? job.hold === null : isSame(job.hold, event)
      law(!has_ended && is_its_own, "only its worker, or no one, fails a job")
      Object.assign(job, { state: "error", wrote_nothing: event.wrote_nothing })
      return
    }
    case "JobCancelled":
      law(!has_ended, "what has ended is not cancelled")
      Object.assign(job, { state: "error", cancelled: true, wrote_nothing: false })
      return
    case "JobRetried": {
      law(job.state === "error", "only a job in error is tried again")
      const may = job.wrote_nothing && !job.cancelled && job.retries < job.max_retries
      law(!event.automatic || may, "by itself a job is tried again that provably wrote nothing")
      const { attempt, retries } = job
      Object.assign(job, { state: "queued", hold: null, started: false, cancelled: false })
      Object.assign(job, { attempt: attempt + 1, retries: retries + Number(event.automatic) })
      return
    }
    case "JobRecast":
      return law(job.state === "queued", "only what waits is put before the conductor again")
  }
}

export const takeWorker = ({ workers }: Records, law: Law, happened: Happened<WorkerEvent>) => {
  const { id, event } = happened
  const known = workers.get(id)
  if (event.type === "WorkerBootStarted" || event.type === "WorkerRegistered") {
    const is_boot = event.type === "WorkerBootStarted"
    law(known === undefined || (known.state === "booting" && !is_boot), "a worker comes up once")
    const { domain_id } = event
    const image = is_boot ? event.image : (known?.image ?? event.image_version)
    const capacity_slots = is_boot ? 0 : event.capacity_slots
    const state = is_boot ? "booting" : "ready"
    workers.set(id, { state, capacity_slots, domain_id, image, slots: new Map() })
    return
  }
  if (known === undefined) return law(false, `${event.type} of a worker that was never there`)
  const { state, slots, capacity_slots } = known
  switch (event.type) {
    case "WorkerJobAssigned":
      law(state === "ready", "only a ready worker is given work")
      slots.set(event.job_id, event.fence)
      return law(slots.size <= capacity_slots, "no worker has more jobs than slots")
    case "WorkerJobReleased":
      law(slots.get(event.job_id) === event.fence, "a slot is freed once, by its fence")
      slots.delete(event.job_id)
      return
    case "WorkerDrainStarted":
      law(state === "ready", "only a ready worker is drained")
      known.state = "draining"
      return
    case "WorkerUndrained":
      law(state === "draining", "only a draining worker is undrained")
      known.state = "ready"
      return
    case "WorkerRetirementStarted":
      law(state === "draining", "only a draining worker retires")
      known.state = "retiring"
      return
    case "WorkerRetired":
      law(state === "retiring" && slots.size === 0, "a worker is retired when it runs nothing")
      known.state = "retired"
      return
    case "WorkerBootFailed":
      law(state === "booting", "a boot fails once")
      known.state = "dead"
      return
    case "WorkerDied":
      law(state !== "dead" && state !== "retired", "a worker dies once")
      known.state = "dead"
  }
}

export const takeLease = ({ leases }: Records, law: Law, { id, event }: Happened<LeaseEvent>) => {
  const lease = leases.get(id) ?? { holds: new Map(), fence: 0, is_closed: false }
  leases.set(id, lease)
  switch (event.type) {
    case "LeaseAcquired": {
      const hold = Struct.omit(event, ["type"])
      law(hold.fence === lease.fence + 1, "fences rise one by one")
      law(!lease.holds.has(hold.job_id), "a job holds a repository once")
      lease.fence = hold.fence
      lease.holds.set(hold.job_id, hold)
      const modes = [...lease.holds.values()].map(({ mode }) => mode)
      const writers = modes.filter((mode) => mode !== "read").length
      const is_alone = modes.length === 1 || !modes.includes("exclusive")
      return law(writers <= 1 && is_alone, "a repository has one writer, or one job alone")
    }
    case "LeaseReleased":
    case "LeaseBroken":
      law(lease.holds.get(event.job_id)?.fence === event.fence, "a hold ends once, by its fence")
      lease.holds.delete(event.job_id)
      return
    case "LeaseClosed":
      law(lease.holds.size === 0, "a target is deleted only without lease holders")
      lease.is_closed = true
  }
}

export const takeFleet = ({ fleet }: Records, law: Law, { event }: Happened<FleetEvent>) => {
  if (event.type === "BootFailureRecorded") fleet.failed_at.push(Date.parse(event.at))
  if (event.type !== "BootAllowed") return
  const at = Date.parse(event.at)
  const { replacement, cooldown_seconds, max_failures, failure_window_seconds } = event
  const is_cool = at - fleet.booted_at >= cooldown_seconds * 1000
  law(replacement || is_cool, "boots keep their distance")
  const recent = fleet.failed_at.filter((failed) => at - failed < failure_window_seconds * 1000)
  law(recent.length < max_failures, "after so many failures nothing boots")
  fleet.booted_at = at
}

export const takeRollout = ({ rollouts }: Records, law: Law, happened: Happened<RolloutEvent>) => {
  const { id, event } = happened
  if (event.type === "RolloutCreated") {
    const others = [...rollouts.values()].filter(({ state }) => state === "running")
    law(others.length === 0, "one rollout runs at a time")
    rollouts.set(id, { state: "running", replaced: [] })
    return
  }
  const rollout = rollouts.get(id)
  if (rollout === undefined) return law(false, `${event.type} of a missing rollout`)
  law(rollout.state === "running", "a rollout ends once")
  if (event.type === "ReplacementStarted") {
    law(!rollout.replaced.includes(event.old_worker_id), "a worker is replaced once")
    rollout.replaced.push(event.old_worker_id)
  }
  if (event.type === "RolloutSucceeded") rollout.state = "succeeded"
  if (event.type === "RolloutHalted") rollout.state = "halted"
}

export const takeLedger = ({ ledgers }: Records, law: Law, happened: Happened<LedgerEvent>) => {
  const { id, event } = happened
  const counts = ledgers.get(id) ?? { targets: 0, policies: 0, backups: 0, templates: 0 }
  ledgers.set(id, counts)
  if (event.type === "Released") counts[event.what] -= event.count
  else law(++counts[event.what] <= event.limit, `a project has no more ${event.what} than it may`)
}
