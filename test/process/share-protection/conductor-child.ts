/**
 * `node conductor-child.ts <data folder> load|rest`: the conductor and its agents over the real
 * log, in one process that may be killed. With `load`, tenants send requests until it is killed;
 * with `rest`, no requests are sent, and it ends with a summary line once it is idle.
 */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, DateTime, Effect, Layer, Redacted, References, Stream } from "effect"
import { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { startAgent } from "#actors/share-protection/agent.ts"
import { cancelJob } from "#actors/share-protection/jobs/transitions.ts"
import type { Agents } from "#actors/share-protection/ports/agents.ts"
import type { Boot } from "#actors/share-protection/ports/compute.ts"
import { Compute } from "#actors/share-protection/ports/compute.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { type ConductorOptions, conductor } from "#actors/share-protection/processes/conductor.ts"
import { orphanSweep } from "#actors/share-protection/processes/orphan-sweep.ts"
import {
  type Batch,
  createTarget,
  definePolicy,
  queueTargetJob,
  requestBackup,
  requestRestore,
  restartEnrollment,
} from "#actors/share-protection/requests.ts"
import { sharesEmbedded } from "#adapters/share-protection/shares/embedded.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { addTrust, inspector, trustsEmbedded } from "#adapters/share-protection/trusts-embedded.ts"
import { openVault, vaultEmbedded } from "#adapters/share-protection/vault-embedded.ts"
import { Log } from "#events/log.ts"
import { SecretKeeper } from "#gateway/identity.ts"
import {
  BackupId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import { exclusive } from "#server/session.ts"
import { seeded } from "../../world/seeded.ts"
import { type Fact, foldedBy, ticksIn } from "../../world/server/share-records.ts"
import { given } from "../../world/settings-given.ts"
import { factsOf } from "../../world/share-protection/deployment.ts"
import { agentsMemory } from "../../world/share-protection/memory/agents.ts"
import { bucketsMemory, goodBucket, type S3 } from "../../world/share-protection/memory/buckets.ts"
import { computeMemory, machineRoom } from "../../world/share-protection/memory/compute.ts"
import { engineMemory } from "../../world/share-protection/memory/engine.ts"
import { policy, project_id, target, uuid } from "../../world/share-protection/samples.ts"
import { unsettled } from "../../world/share-protection/simulation/laws.ts"
import { objectsIn } from "./bucket-folder.ts"

const [data_dir = "", mode = "", seed = "1"] = process.argv.slice(2)
const random = seeded(Number(seed))

const endpoint = "https://s3.example"
const target_ids = [1, 2].map((n) => TargetId.make(uuid(900 + n)))
const share_ids = [1, 2, 3, 4].map((n) => ShareId.make(uuid(800 + n)))

const timing = {
  worker_heartbeat_deadline_seconds: 2,
  command_timeout_seconds: 1,
  max_command_duration_seconds: 20,
  worker_boot_max_failures: 1000,
  worker_boot_failure_window_seconds: 60,
  queued_job_deadline_seconds: 3,
}
const min_workers = 1
const quotas = { targets: 10, policies: 10, backups: 10_000 }
const worker_project_id = ProjectId.make("workers")
const image = "image-1"

/** Maximum time until everything is idle, and the polling interval, in milliseconds. */
const quiet_ms_max = 60_000
const look_ms = 200
/** Pauses between a tenant's requests, in milliseconds. */
const pause_ms_max = 150
const tenants = 3

/** Each write takes this many milliseconds, so that a kill can interrupt one. */
const write_ms = 5

const s3: S3 = new Map(
  target_ids.map((id, n) => {
    const objects = objectsIn(join(data_dir, "s3", id))
    const past = { versions: new Map(), deleted: new Set<string>() }
    return [`${endpoint}/bucket-${n}`, { ...goodBucket, ...past, objects, write_ms }] as const
  }),
)

const outside = Effect.gen(function* () {
  const trusts = yield* openTrustStore(data_dir)
  const vault = yield* openVault(data_dir)
  if (trusts.find(target.trust_id) === undefined) {
    yield* addTrust(trusts, target.trust_id, { project_id, roles: ["member"] })
  }
  return Layer.mergeAll(
    trustsEmbedded(trusts),
    vaultEmbedded(vault, inspector(trusts)),
    sharesEmbedded({ root: join(data_dir, "shares"), snapshots: () => true }),
    engineMemory(s3),
    bucketsMemory(s3),
    agentsMemory(timing),
    LiveWorkers.memory,
    NodeFileSystem.layer,
  )
})

const agentOf = ({ worker_id, project_id, domain_id }: Boot) =>
  startAgent({
    worker_id,
    registration: {
      project_id,
      domain_id,
      hostname: "host",
      image_version: image,
      capacity_slots: 2,
    },
    shape: "A",
    require_fips_profile: false,
    subprocess_timeout_seconds: 10,
    new_password: Effect.sync(() => Redacted.make(randomUUID())),
    max_command_duration_seconds: timing.max_command_duration_seconds,
    heartbeat_interval_seconds: timing.worker_heartbeat_deadline_seconds / 4,
    scratch_dir: join(data_dir, "scratch"),
  }).pipe(
    Effect.flatMap(({ dismissed }) => dismissed),
    Effect.scoped,
  )

const optionsOf = Effect.fnUntraced(function* (machines: Compute["Service"]) {
  const orphan_sweep = yield* orphanSweep(timing.queued_job_deadline_seconds)
  const options: ConductorOptions = {
    scheduling: { scheduler_interval_seconds: 1, schedule_jitter_seconds: 0, quotas },
    dispatch: timing,
    fleet: {
      ...timing,
      project_id: worker_project_id,
      min_workers,
      max_workers: 3,
      worker_boot_cooldown_seconds: 0,
      worker_boot_grace_seconds: 5,
      worker_boot_image: image,
    },
    upkeep: { maintenance_interval_seconds: 5, restore_test_interval_seconds: 5 },
    reconciling: { reconciliation_interval_seconds: () => 1, loops: { orphan_sweep } },
    machines,
  }
  return options
})

/** Sends the batch as a tenant; ignores rejections. */
const ask = Effect.fnUntraced(function* (batch: Batch) {
  const { send } = yield* Commands
  const at = DateTime.formatIso(yield* DateTime.now)
  yield* Effect.ignore(send({ command_id: randomUUID(), actor: "tenant", at }, ...batch))
})

/** Restarts an enrollment that a kill ended; otherwise the request is rejected. */
const enroll = (target_id: TargetId) =>
  ask(restartEnrollment(target_id, project_id, JobId.make(randomUUID())))

/** Registers targets and a policy for each share; requests for existing ones are rejected. */
const register = Effect.gen(function* () {
  const { put } = yield* SecretKeeper
  const secret = (payload: string) => put({ project_id, payload: Redacted.make(payload) })
  const vault_secret_map = {
    access_key: yield* secret(goodBucket.access_key),
    secret_key: yield* secret(goodBucket.secret_key),
  }
  for (const [n, id] of target_ids.entries()) {
    const job_id = JobId.make(randomUUID())
    const place = { endpoint, bucket: `bucket-${n}`, vault_secret_map, job_id }
    yield* ask(createTarget(id, { ...target, template_id: null, ...place }, quotas.targets))
    yield* enroll(id)
  }
  for (const share_id of share_ids) {
    const folder = join(data_dir, "shares", project_id, share_id)
    mkdirSync(folder, { recursive: true })
    for (let n = 0; n < 5; n++) writeFileSync(join(folder, `${n}.txt`), `${randomUUID()}`)
    const own = { id: PolicyId.make(randomUUID()), target_id: targetOf(share_id) }
    const scheduled = { ...policy, ...own, schedule: "* * * * *", retention: { keep_last: 2 } }
    yield* ask(definePolicy(share_id, scheduled, quotas.policies))
  }
})

const targetOf = (share_id: ShareId) => {
  const target_id = target_ids[share_ids.indexOf(share_id) % target_ids.length]
  assert(target_id, "there are targets")
  return target_id
}

const tenant = Effect.gen(function* () {
  const requests: Array<{ backup_id: BackupId; job_id: JobId; share_id: ShareId }> = []
  while (true) {
    yield* Effect.sleep(random.next() * pause_ms_max)
    const chance = random.next()
    const share_id = share_ids[random.between(0, share_ids.length - 1)]
    const known = requests[random.between(0, requests.length - 1)]
    assert(share_id, "there are shares")
    const target_id = targetOf(share_id)
    const job_id = JobId.make(randomUUID())
    if (known === undefined || chance < 0.6) {
      const backup_id = BackupId.make(randomUUID())
      const about = { project_id, share_id, target_id, policy_id: null, tick: null }
      const request = { ...about, backup_id, job_id, crash_consistent_wanted: null, max_retries: 1 }
      yield* ask(requestBackup(request, quotas.backups))
      requests.push({ backup_id, job_id, share_id })
    } else if (chance < 0.7) {
      yield* Effect.flatMap(factsOf(known.job_id), (facts) => ask(cancelJob(facts))).pipe(
        // The backup was rejected, so there is no such job.
        Effect.catchDefect(() => Effect.void),
      )
    } else if (chance < 0.9) {
      const { backup_id, share_id } = known
      const from = { project_id, backup_id, share_id, target_id: targetOf(share_id), job_id }
      const restore = { ...from, mode: "new_share", sub_path: null, force: false } as const
      const whole = { ...restore, dry_run: false, plan_hash: null }
      yield* ask(requestRestore(RestoreId.make(randomUUID()), whole))
    } else yield* ask([queueTargetJob(job_id, "maintenance", target_id, project_id)])
  }
})

/** Reports each completed job, so that a kill can interrupt ongoing work. */
const reporting = Effect.gen(function* () {
  const log = yield* Log
  const from = yield* log.head("")
  yield* Stream.runForEach(log.follow("share-protection.job", from), ({ commit }) =>
    Effect.sync(() => {
      if (commit.events.some(({ type }) => type === "JobCompleted")) console.log("completed")
    }),
  )
})

const recordsNow = Effect.gen(function* () {
  const all = yield* Stream.runCollect((yield* Log).read("share-protection"))
  const events = all.flatMap(({ stream, position, commit }) => {
    const [, aggregate = "", id = ""] = stream.split(".")
    return commit.events.map(({ type, ...data }): Fact => ({ aggregate, id, position, type, data }))
  })
  return { events, records: foldedBy(events) }
})

/** Waits until no work is left, and prints a summary of the log. */
const rest = Effect.gen(function* () {
  const since = performance.now()
  while (true) {
    const { events, records } = yield* recordsNow
    const unenrolled = [...records.targets].filter(([, { status }]) => status !== "available")
    for (const [id, { status }] of unenrolled) {
      if (status === "error") yield* enroll(TargetId.make(id))
    }
    const enrolling = unenrolled.map(([id, { status }]) => `target ${id} is ${status}`)
    const left = [...unsettled(records, min_workers), ...enrolling]
    const quiet_ms = Math.round(performance.now() - since)
    if (left.length === 0) {
      const counts: Record<string, number> = {}
      for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1
      const ticks = ticksIn(events)
      return console.log(`quiet ${JSON.stringify({ quiet_ms, counts, ticks })}`)
    }
    assert(quiet_ms < quiet_ms_max, `not quiet: ${left.join(", ")}`)
    yield* Effect.sleep(look_ms)
  }
})

const main = Effect.gen(function* () {
  yield* Effect.gen(function* () {
    const services = yield* Effect.context<Agents | Commands | LiveWorkers | Log>()
    const around = yield* Effect.context<Effect.Services<ReturnType<typeof agentOf>>>()
    const room = machineRoom(
      [{ name: image, properties: { svc_worker_image: true, engine_version: null } }],
      (boot) => Effect.ignore(Effect.provideContext(agentOf(boot), around)),
    )
    const machines = Context.get(yield* Layer.build(computeMemory(room)), Compute)
    yield* register
    yield* Effect.forkScoped(reporting)
    yield* Effect.forkScoped(
      Effect.provideContext(Effect.flatMap(optionsOf(machines), conductor), services),
    )
    if (mode === "rest") return yield* rest
    yield* Effect.all(
      Array.from({ length: tenants }, () => tenant),
      { concurrency: "unbounded" },
    )
  }).pipe(Effect.provide(Layer.unwrap(outside)), Effect.provide(host))
}).pipe(
  Effect.scoped,
  Effect.provide(exclusive(given({ data: { dir: data_dir } }))),
  Effect.provideService(References.MinimumLogLevel, "Warn"),
)

await Effect.runPromise(main)
process.exit(0)
