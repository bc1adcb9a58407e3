/**
 * Faults in every state of a backup's job: its worker, the server with its conductor, nats-server
 * or the S3 server stops at that moment and returns. The job must end correctly, and the repository
 * must contain exactly one snapshot of each available backup and none of any other.
 */
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import type { Repository } from "#actors/share-protection/ports/engine.ts"
import { job_steps } from "#schemas/share-protection/job.ts"
import { type TestRadosgw, testRadosgw } from "../../world/programs/radosgw.ts"
import {
  end,
  natsServersOn,
  newFolder,
  outputOf,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import {
  maintained,
  passwordOf,
  repositoryIn,
  snapshotTags,
} from "../../world/server/share-repository.ts"
import {
  agentsOf,
  enroll,
  shareFolder,
  step_ms_max,
  type Tenant,
  tenantOf,
} from "../../world/server/share-tenant.ts"

export const victims = ["agent", "server", "nats-server", "radosgw"] as const
export type Victim = (typeof victims)[number]
export const moments = ["queued", ...job_steps] as const
export type Moment = (typeof moments)[number]

/** A transfer takes two seconds, so that a fault can interrupt it. */
const upload_kib_per_second = 2_500
const bytes = 5_000_000
const outage_ms = 1_500
const look_ms = 2
/** A failed job is retried within this time or never: the first pause is 10 s. */
const settled_ms = 14_000
const end_ms_max = 120_000

const settings = {
  ALMANAC_SERVICES: '["share-protection"]',
  ALMANAC_CONDUCTOR__WORKER_HEARTBEAT_DEADLINE_SECONDS: "3",
  ALMANAC_CONDUCTOR__WORKER_BOOT_COOLDOWN_SECONDS: "0",
  ALMANAC_CONDUCTOR__RECONCILIATION_INTERVAL: "5",
  ALMANAC_ENGINE__UPLOAD_KIB_PER_SECOND: String(upload_kib_per_second),
}

export interface Fault {
  readonly victim: Victim
  readonly moment: Moment
}

export interface FaultEnd extends Fault {
  /** The last state seen before the fault. */
  readonly met: string
  readonly state: string
  readonly attempt: number
  readonly took_ms: number
}

interface World {
  readonly s3: TestRadosgw
  readonly repository: Repository
  readonly cache_dir: string
  readonly target_id: string
  server: Server
  tenant: Tenant
}

const isEnded = (state: string) => state === "available" || state === "error"

const names: ReadonlyArray<string> = moments
const placeOf = (state: string) => names.indexOf(state)

/** Whether the state is the moment or comes after it, in the order of a job's states. */
const isReached = (state: string, moment: Moment) =>
  isEnded(state) || placeOf(state) >= placeOf(moment)

/** Stops the victim and lets it return. */
const strike = async (world: World, victim: Victim) => {
  const { server, s3 } = world
  switch (victim) {
    case "agent":
      for (const pid of agentsOf(server)) end(pid)
      return
    case "nats-server":
      for (const pid of natsServersOn(server.data_dir)) end(pid)
      return
    case "radosgw":
      await Effect.runPromise(s3.stop)
      await pause(outage_ms)
      return await Effect.runPromise(s3.start)
    case "server":
      world.tenant.close()
      await server.killAlone()
      world.server = await startServer(server.data_dir, settings)
      world.tenant = tenantOf(world.server)
  }
}

/** Waits until the job has ended and stays in that state. */
const settled = async (world: World, job_id: string) => {
  let since = performance.now()
  let seen = ""
  return await until(
    `the end of job ${job_id}:\n${outputOf(world.server)}`,
    end_ms_max,
    async () => {
      // The log may be restarting.
      const now = await world.tenant.job(job_id).catch(() => undefined)
      if (now === undefined) return undefined
      const description = `${now.state} ${now.attempt}`
      if (description !== seen) since = performance.now()
      seen = description
      const is_settled = now.state === "available" || performance.now() - since > settled_ms
      return isEnded(now.state) && is_settled ? now : undefined
    },
  )
}

const round = async (world: World, policy_id: string, fault: Fault): Promise<FaultEnd> => {
  const since = performance.now()
  const { project_id, share_id } = world.tenant
  writeFileSync(
    join(shareFolder(world.server, { project_id }, share_id), "file"),
    randomBytes(bytes),
  )
  const body = { share_id, target_id: world.target_id, policy_id }
  const { backup } = await world.tenant.made("/v1/backups", body)
  assert(backup !== undefined)
  let met = "queued"
  while (!isReached(met, fault.moment)) {
    met = (await world.tenant.job(backup.job_id)).state
    await pause(look_ms)
  }
  await strike(world, fault.victim)
  const { state, attempt, error } = await settled(world, backup.job_id)
  // The backup receives its job's end through the log, a moment later.
  await until(`the backup ${state} as its job: ${error?.detail}`, step_ms_max, async () => {
    const { status } = await world.tenant.request("GET", `/v1/backups/${backup.id}`)
    return status === state
  })
  const expected = state === "available" ? 1 : 0
  // Reconciliation removes a snapshot that a worker wrote but never reported.
  await until(`${expected} snapshots, the job being ${state}`, step_ms_max, async () => {
    const tags = await Effect.runPromise(snapshotTags(world.repository, world.cache_dir))
    return tags.filter((all) => all.includes(`backup=${backup.id}`)).length === expected
  })
  return { ...fault, met, state, attempt, took_ms: performance.now() - since }
}

const worldOf = async (scope: Scope.Scope) => {
  const s3 = await Effect.runPromise(Effect.provideService(testRadosgw, Scope.Scope, scope))
  const server = await startServer(newFolder(), settings)
  const tenant = tenantOf(server)
  const bucket: Bucket = await Effect.runPromise(s3.bucket())
  const target_id = await enroll(server, tenant, bucket)
  const { trust_id, repository_password_ref } = await tenant.request(
    "GET",
    `/v1/targets/${target_id}`,
  )
  const opened = passwordOf(server.data_dir, trust_id, repository_password_ref)
  const repository = repositoryIn(bucket, await Effect.runPromise(opened))
  const world: World = { s3, repository, cache_dir: newFolder(), target_id, server, tenant }
  return world
}

/** Makes another backup and deletes it: a job that needs exclusive access removes the snapshot. */
const forgotten = async ({ tenant, target_id, server }: World, share_id: string) => {
  const { backup } = await tenant.made("/v1/backups", { share_id, target_id })
  await tenant.available(`/v1/backups/${backup?.id}`)
  const path = `/v1/jobs?target_id=${target_id}&limit=1000`
  const retentions = async () => {
    const { jobs } = await tenant.request("GET", path)
    return jobs.filter(({ job_type }: { readonly job_type: string }) => job_type === "retention")
  }
  const before = (await retentions()).length
  await tenant.gone(`/v1/backups/${backup?.id}`)
  await until(`a snapshot forgotten:\n${outputOf(server)}`, step_ms_max, async () => {
    const now: ReadonlyArray<{ readonly state: string }> = await retentions()
    return now.length > before && now.every(({ state }) => state === "available")
  })
}

/**
 * Applies the faults one after another. Then checks that the repository is intact and needs no
 * manual unlock: a job with exclusive access completes, and so does another backup.
 */
export const shareFaults = async (
  faults: ReadonlyArray<Fault>,
  onRound: (end: FaultEnd) => void = () => {},
) => {
  const scope = await Effect.runPromise(Scope.make())
  try {
    const world = await worldOf(scope)
    const { share_id } = world.tenant
    const { id: policy_id } = await world.tenant.request("POST", "/v1/policies", {
      name: "often",
      share_id,
      target_id: world.target_id,
      schedule: "0 0 1 1 *",
      retention: { keep_last: 100 },
      max_retries: 3,
    })
    for (const fault of faults) {
      try {
        onRound(await round(world, policy_id, fault))
      } catch (cause) {
        const { victim, moment } = fault
        throw new Error(`${victim} in ${moment}: ${cause}\n${outputOf(world.server)}`, { cause })
      }
    }
    const job_id = await world.tenant.upgrade(world.target_id)
    assert.equal((await settled(world, job_id)).state, "available", "the repository is free")
    await forgotten(world, share_id)
    world.tenant.close()
    assert.deepEqual(await world.server.stop(), { code: 0, signal: null })
    // With exclusive access, and without removing any lock.
    await Effect.runPromise(maintained(world.repository, world.cache_dir))
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Every victim in every state. */
export const all_faults: ReadonlyArray<Fault> = victims.flatMap((victim) =>
  moments.map((moment) => ({ victim, moment })),
)
