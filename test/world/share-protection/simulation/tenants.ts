/** Tenants and operators of a simulation: they send random requests, many of which are rejected. */
import { Effect } from "effect"
import { type Addressed, address, type Commands } from "#actors/commands.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { cancelJob, type JobFacts, retryJob } from "#actors/share-protection/jobs/transitions.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { Reconciliation } from "#actors/share-protection/reconciliation.ts"
import {
  createTarget,
  definePolicy,
  deleteBackup,
  deletePolicy,
  deleteTarget,
  requestBackup,
  requestRestore,
  restartEnrollment,
  startFormatUpgrade,
  undeleteBackup,
} from "#actors/share-protection/requests.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import { Scheduler, scheduler_id } from "#actors/share-protection/scheduler.ts"
import { Target } from "#actors/share-protection/target.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { ConfigureDomain } from "#schemas/share-protection/domain.ts"
import { AllowRollout } from "#schemas/share-protection/fleet.ts"
import {
  BackupId,
  DomainId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  RolloutId,
  ShareId,
  TargetId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import { UpdatePolicy } from "#schemas/share-protection/policy.ts"
import { TriggerReconciliation } from "#schemas/share-protection/reconciliation.ts"
import { CreateRollout } from "#schemas/share-protection/rollout.ts"
import { PauseScheduler, ResumeScheduler } from "#schemas/share-protection/scheduler.ts"
import { UpdateTarget } from "#schemas/share-protection/target.ts"
import { DrainWorker, RetireWorker } from "#schemas/share-protection/worker.ts"
import { secretRef, uuid } from "../samples.ts"
import type { JobRecord } from "./records.ts"
import { count, pause, type World } from "./world.ts"

type Batch = ReadonlyArray<Addressed<unknown>>

export const worker_project_id = ProjectId.make("workers")
export const limits = { targets: 2, policies: 2, backups: 12 }

/** Shares with their projects. */
const shares: ReadonlyArray<readonly [ShareId, ProjectId]> = [
  [ShareId.make(uuid(1)), ProjectId.make("project-1")],
  [ShareId.make(uuid(2)), ProjectId.make("project-1")],
  [ShareId.make(uuid(3)), ProjectId.make("project-1")],
  [ShareId.make(uuid(4)), ProjectId.make("project-2")],
]

/** Number of hex digits in a UUIDv7's timestamp. */
const time_digits = 12

export const newId = ({ time, random }: World) => {
  const ms = time.now().toString(16).padStart(time_digits, "0")
  const tail = random
    .between(0, 2 ** 47)
    .toString(16)
    .padStart(time_digits, "0")
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7000-8000-${tail}`
}

/** A random element; undefined if there are none. */
const oneOf = <A>({ random }: World, list: Iterable<A>): A | undefined => {
  const all = [...list]
  return all[random.between(0, all.length - 1)]
}

const someShare = (world: World) => oneOf(world, shares) ?? shares[0]

const keys = { access_key: secretRef(1), secret_key: secretRef(2) }

const makeTarget = (world: World): Batch => {
  const [, project_id] = someShare(world) ?? []
  if (project_id === undefined) return []
  const target_id = TargetId.make(newId(world))
  const is_complete = world.random.next() < 0.7
  const about = {
    ...{ name: "A bucket", endpoint: "https://s3.example.org", bucket: `bucket-${target_id}` },
    ...({ ca_cert_ref: null, addressing_mode: "path", region: null, domain_id: null } as const),
    trust_id: is_complete ? project_id : null,
    vault_secret_map: is_complete ? keys : null,
    ...{ template_id: null, registered_by: null, project_id },
  }
  const job_id = JobId.make(newId(world))
  return createTarget(target_id, { ...about, job_id }, limits.targets)
}

const someTarget = (world: World, project_id?: string) => {
  const all = [...world.records.targets].filter(
    ([, target]) =>
      target.status !== "deleted" && (project_id === undefined || target.project_id === project_id),
  )
  const [id, target] = oneOf(world, all) ?? []
  return id === undefined || target === undefined ? undefined : { id: TargetId.make(id), target }
}

const completeTarget = (world: World): Batch => {
  const some = someTarget(world)
  if (some === undefined) return []
  const changes = { trust_id: some.target.project_id, vault_secret_map: keys }
  return [address(Target, some.id, UpdateTarget.make(changes))]
}

const enrollAgain = (world: World): Batch => {
  const some = someTarget(world)
  if (some === undefined) return []
  return restartEnrollment(some.id, some.target.project_id, JobId.make(newId(world)))
}

const upgradeTarget = (world: World): Batch => {
  const some = someTarget(world)
  if (some === undefined) return []
  return startFormatUpgrade(some.id, some.target.project_id, JobId.make(newId(world)))
}

const removeTarget = (world: World): Batch => {
  const some = someTarget(world)
  if (some === undefined) return []
  const waiting = [...world.records.jobs].filter(
    ([, { target_id, state }]) => target_id === some.id && state === "queued",
  )
  return deleteTarget(
    some.id,
    some.target,
    waiting.map(([id]) => JobId.make(id)),
  )
}

/**
 * Most policies keep few backups; otherwise retention would rarely expire any in such a short run.
 */
const retentionOf = ({ random }: World) =>
  random.next() < 0.75
    ? { keep_last: random.between(1, 2) }
    : { keep_daily: random.between(1, 3), keep_weekly: random.between(0, 2) }

const makePolicy = (world: World): Batch => {
  const [share_id, project_id] = someShare(world) ?? []
  if (share_id === undefined || project_id === undefined) return []
  const target = someTarget(world, project_id)
  if (target === undefined) return []
  const about = {
    ...{ name: "A policy", timezone: "UTC", enabled: true, target_template_id: null },
    ...{ include_patterns: [], exclude_patterns: [], max_retries: world.random.between(0, 3) },
  }
  const schedule = world.random.pick(["* * * * *", "*/2 * * * *", "*/5 * * * *"])
  const id = PolicyId.make(newId(world))
  const policy = { ...about, id, project_id, target_id: target.id, schedule }
  return definePolicy(share_id, { ...policy, retention: retentionOf(world) }, limits.policies)
}

const somePolicy = (world: World) => {
  const all = [...world.records.shares].flatMap(([id, { policy }]) =>
    policy === null ? [] : [{ share_id: ShareId.make(id), policy }],
  )
  return oneOf(world, all)
}

const changePolicy = (world: World): Batch => {
  const some = somePolicy(world)
  if (some === undefined) return []
  const { random } = world
  const changes = random.pick<Omit<typeof UpdatePolicy.Type, "type" | "policy_id">>([
    { enabled: random.next() < 0.7 },
    { retention: retentionOf(world) },
    { schedule: random.pick(["* * * * *", "*/10 * * * *"]) },
    { max_retries: random.between(0, 3) },
  ])
  const update = UpdatePolicy.make({ policy_id: some.policy.id, ...changes })
  return [address(Policy, some.share_id, update)]
}

const removePolicy = (world: World): Batch => {
  const some = somePolicy(world)
  return some === undefined ? [] : deletePolicy(some.share_id, some.policy)
}

const askBackup = (world: World): Batch => {
  const [share_id, project_id] = someShare(world) ?? []
  if (share_id === undefined || project_id === undefined) return []
  const policy = world.records.shares.get(share_id)?.policy ?? null
  const of_policy = world.random.next() < 0.5 ? policy : null
  const target_id = of_policy?.target_id ?? someTarget(world, project_id)?.id
  if (target_id === undefined) return []
  const about = { project_id, share_id, target_id, policy_id: of_policy?.id ?? null }
  const request = {
    ...{ ...about, backup_id: BackupId.make(newId(world)), job_id: JobId.make(newId(world)) },
    ...{ crash_consistent_wanted: null, tick: null, max_retries: of_policy?.max_retries ?? 0 },
  }
  return requestBackup(request, limits.backups)
}

const someBackup = (world: World) => {
  const all = [...world.records.backups].filter(([, { status }]) => status !== "deleted")
  const [id, backup] = oneOf(world, all) ?? []
  return id === undefined || backup === undefined ? undefined : { id: BackupId.make(id), backup }
}

const removeBackup = (world: World): Batch => {
  const some = someBackup(world)
  if (some === undefined) return []
  const { id: backup_id, backup } = some
  const { engine_snapshot_id, status } = backup
  const expired = status === "expired"
  const job_id = JobId.make(newId(world))
  const forget = { backup_id, engine_snapshot_id: engine_snapshot_id ?? "", job_id }
  const has_snapshot = status === "available" && engine_snapshot_id !== null
  const what = { expired, ...(has_snapshot ? { forget } : {}) }
  return deleteBackup(backup_id, backup, what, new Date(world.time.now()).toISOString())
}

const askRestore = (world: World): Batch => {
  const some = someBackup(world)
  if (some === undefined) return []
  const { project_id, share_id, target_id } = some.backup
  const mode = world.random.pick(["new_share", "in_place"] as const)
  return requestRestore(RestoreId.make(newId(world)), {
    ...{ project_id, share_id, target_id, backup_id: some.id, job_id: JobId.make(newId(world)) },
    ...{ mode, sub_path: null, force: mode === "in_place" },
    dry_run: mode === "in_place" && world.random.next() < 0.3,
    plan_hash: mode === "in_place" && world.random.next() < 0.3 ? "a".repeat(64) : null,
  })
}

const askBack = (world: World): Batch => {
  const all = [...world.records.backups].filter(([, { status }]) => status === "expired")
  const [id, backup] = oneOf(world, all) ?? []
  if (id === undefined || backup === undefined) return []
  const { project_id, share_id, target_id } = backup
  const about = { backup_id: BackupId.make(id), project_id, share_id, target_id }
  return undeleteBackup(JobId.make(newId(world)), about, limits.backups)
}

const factsOf = (id: string, job: JobRecord): JobFacts => ({
  ...{ ...job, job_id: JobId.make(id) },
  hold: null,
})

const someJob = (world: World, is_one: (job: JobRecord) => boolean) => {
  const [id, job] =
    oneOf(
      world,
      [...world.records.jobs].filter(([, job]) => is_one(job)),
    ) ?? []
  return id === undefined || job === undefined ? undefined : factsOf(id, job)
}

const stopJob = (world: World): Batch => {
  const facts = someJob(world, ({ state }) => state !== "available" && state !== "error")
  return facts === undefined ? [] : cancelJob(facts)
}

const tryJobAgain = (world: World): Batch => {
  const facts = someJob(world, ({ state }) => state === "error")
  if (facts === undefined) return []
  const own = facts.backup_id && world.records.backups.get(facts.backup_id)?.policy_id
  const present = facts.share_id && world.records.shares.get(facts.share_id)?.policy?.id
  return retryJob(facts, { automatic: false, policy_id: (own === present && own) || null })
}

const someWorker = (world: World, state: string) => {
  const all = [...world.records.workers].filter(([, worker]) => worker.state === state)
  const [id] = oneOf(world, all) ?? []
  return id === undefined ? undefined : WorkerId.make(id)
}

const drain = (world: World): Batch => {
  const id = someWorker(world, "ready")
  return id === undefined ? [] : [address(Worker, id, DrainWorker.make({}))]
}

const retire = (world: World): Batch => {
  const id = someWorker(world, "draining")
  return id === undefined ? [] : [address(Worker, id, RetireWorker.make({}))]
}

const rollOut = (world: World): Batch => {
  const rollout_id = RolloutId.make(newId(world))
  const image = `image-${world.random.between(1, 3)}`
  const domain_ids = [DomainId.make("canary"), DomainId.make("default")]
  return [
    address(Fleet, worker_project_id, AllowRollout.make({ rollout_id })),
    address(Rollout, rollout_id, CreateRollout.make({ image, domain_ids })),
  ]
}

const configure = (world: World): Batch => [
  address(
    Domain,
    world.random.pick(["canary", "default"]),
    ConfigureDomain.make({ min_workers: world.random.between(0, 2) }),
  ),
]

const pauseTicks: Batch = [address(Scheduler, scheduler_id, PauseScheduler.make({}))]

const resumeTicks = ({ time }: World): Batch => {
  const at = new Date(time.now()).toISOString()
  return [address(Scheduler, scheduler_id, ResumeScheduler.make({ at }))]
}

/** The requests, with their relative weights. */
const wishes: ReadonlyArray<readonly [number, (world: World) => Batch]> = [
  [8, makeTarget],
  [8, completeTarget],
  [4, enrollAgain],
  [2, upgradeTarget],
  [1, removeTarget],
  [8, makePolicy],
  [5, changePolicy],
  [1, removePolicy],
  [24, askBackup],
  [4, removeBackup],
  [10, askRestore],
  [4, stopJob],
  [8, tryJobAgain],
  [1, drain],
  [2, retire],
  [1, rollOut],
  [1, configure],
  [1, () => pauseTicks],
  [6, resumeTicks],
  [1, () => [address(Reconciliation, "main", TriggerReconciliation.make({}))]],
]

/** Initial number of targets and policies, if every request succeeds. */
const first_wishes = 6

const all_weights = wishes.reduce((sum, [weight]) => sum + weight, 0)

/** Backups expire in few runs, and late, so an expired one is undeleted with high probability. */
const wants_it_back = 0.7

const wish = (world: World): Batch => {
  const has_expired = [...world.records.backups.values()].some(({ status }) => status === "expired")
  if (has_expired && world.random.next() < wants_it_back) return askBack(world)
  let left = world.random.between(1, all_weights)
  for (const [weight, make] of wishes) {
    left -= weight
    if (left <= 0) return make(world)
  }
  return []
}

const ask = (world: World, { send }: Commands["Service"], batch: Batch) =>
  Effect.suspend(() => {
    if (batch.length === 0) return Effect.void
    const at = new Date(world.time.now()).toISOString()
    const origin = { command_id: `tenant-${newId(world)}`, actor: "tenant", at }
    return Effect.matchEffect(send(origin, ...batch), {
      onSuccess: () => Effect.sync(() => count(world, "a wish is granted")),
      onFailure: () => Effect.sync(() => count(world, "a wish is refused")),
    })
  })

/** Sends requests until interrupted, beginning with those that all others depend on. */
export const tenants = (world: World, commands: Commands["Service"]) =>
  Effect.gen(function* () {
    for (let first = 0; first < first_wishes; first++) {
      const make = first % 2 === 0 ? makeTarget : makePolicy
      yield* ask(world, commands, make(world))
    }
    while (true) {
      yield* pause(world, 500, 15_000)
      yield* Effect.forkDetach(ask(world, commands, wish(world)))
    }
  })

/** Pauses the schedule, so that no further tick is taken. */
export const quieten = (world: World, commands: Commands["Service"]) =>
  ask(world, commands, pauseTicks)
