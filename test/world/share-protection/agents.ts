/**
 * Test environment for agents: the real command host on the in-memory log, an engine that stores
 * real files, and helpers that act as the conductor. Tests can block or fail each port call by
 * name.
 */
import { randomUUID } from "node:crypto"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import {
  type Context,
  Deferred,
  Effect,
  Exit,
  Layer,
  Logger,
  Redacted,
  References,
  Schedule,
  type Scope,
  Stream,
} from "effect"
import { host } from "#actors/host.ts"
import { type AgentOptions, startAgent } from "#actors/share-protection/agent.ts"
import { jobOrder } from "#actors/share-protection/jobs/job-order.ts"
import { admitJob, assignJob, type Hold } from "#actors/share-protection/jobs/transitions.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import {
  type BackupRequest,
  createTarget,
  requestBackup,
} from "#actors/share-protection/requests.ts"
import { sharesEmbedded } from "#adapters/share-protection/shares/embedded.ts"
import { Log, LogUnavailable } from "#events/log.ts"
import { logMemory } from "#journal"
import { type JobId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { emptyFolder, readTree, type Tree, writeTree } from "../folder.ts"
import {
  backup_job_id,
  enroll_job_id,
  factsOf,
  jobNow,
  leaseNow,
  send,
  targetNow,
  workerNow,
} from "./deployment.ts"
import { worker_id } from "./job-samples.ts"
import { agentsMemory } from "./memory/agents.ts"
import { bucketsMemory, makeBucket, type S3 } from "./memory/buckets.ts"
import { type EngineTroubles, engineMemory, noTroubles } from "./memory/engine.ts"
import { keepSecret, noTenants, type Tenants, trustsMemory, vaultMemory } from "./memory/vault.ts"
import { backup_id, project_id, share_id, target, target_id } from "./samples.ts"

/** The external systems and their faults. */
export interface World {
  /** Location of shares: `<root>/<project>/<share>`. */
  readonly root: string
  readonly s3: S3
  readonly engine: EngineTroubles
  readonly tenants: Tenants
  readonly bucket: Bucket
  /** Replacements of port calls, by `port.call`, while they are set. */
  readonly instead: Map<string, Effect.Effect<unknown, unknown>>
  /** Port calls as `port.call`, in order. */
  readonly calls: Array<string>
  readonly logged: Array<string>
  /** Whether the share service supports snapshots. */
  has_snapshots: boolean
  /** Appends fail. */
  is_log_down: boolean
  /** Reads fail too. */
  is_log_away: boolean
  /** Each appended event, and the number of engines running at that time. */
  readonly reports: Array<{ readonly type: string; readonly engines: number }>
}

type Services = Agents | Buckets | Engine | LiveWorkers | Log | Shares | Trusts | Vault
export type InWorld = Effect.Services<ReturnType<typeof startAgent>> | Services

export const share_tree: Tree = {
  "a.txt": "of the share",
  "docs/b.txt": "in a folder",
  "docs/cache/c.tmp": "left out by no pattern here",
  "empty.bin": "",
}

export const project_folder = (world: World, id: string = share_id) =>
  `${world.root}/${project_id}/${id}`

export const makeWorld = Effect.gen(function* () {
  const s3: S3 = new Map()
  const root = yield* emptyFolder
  const world: World = {
    root,
    s3,
    engine: noTroubles(),
    tenants: noTenants(),
    bucket: makeBucket(s3),
    instead: new Map(),
    calls: [],
    logged: [],
    has_snapshots: true,
    is_log_down: false,
    is_log_away: false,
    reports: [],
  }
  world.tenants.trusts.set(target.trust_id, project_id)
  yield* writeTree(project_folder(world), share_tree)
  return world
})

/** A service whose calls are recorded and can be blocked or made to fail. */
const guarded = <Id, Service extends object>(
  world: World,
  name: string,
  tag: Context.Key<Id, Service>,
  layer: Layer.Layer<Id>,
) =>
  Layer.effect(
    tag,
    Effect.map(tag, (service) => {
      const calls = Object.entries(service).map(([call, value]) => {
        if (typeof value !== "function") return [call, value]
        const key = `${name}.${call}`
        return [
          call,
          (...args: ReadonlyArray<unknown>) =>
            Effect.suspend(() => {
              world.calls.push(key)
              return world.instead.get(key) ?? value(...args)
            }),
        ]
      })
      // The same methods with the same types.
      return Object.fromEntries(calls) as Service
    }),
  ).pipe(Layer.provide(layer))

const down = Effect.fail(new LogUnavailable({ detail: "The log is down." }))

const logThatMayBeDown = (world: World) =>
  Layer.effect(
    Log,
    Effect.map(Log, (log) =>
      Log.of({
        ...log,
        load: (stream) => (world.is_log_away ? down : log.load(stream)),
        tip: (stream) => (world.is_log_away ? down : log.tip(stream)),
        append: (commits) => {
          if (world.is_log_down || world.is_log_away) return down
          const events = commits.flatMap(({ commit }) => commit.events)
          world.reports.push(...events.map(({ type }) => ({ type, engines: world.engine.running })))
          return log.append(commits)
        },
      }),
    ),
  ).pipe(Layer.provide(logMemory))

const worldLayer = (world: World) =>
  Layer.mergeAll(
    host,
    LiveWorkers.memory,
    NodeFileSystem.layer,
    agentsMemory({ command_timeout_seconds: 1 }),
    guarded(world, "engine", Engine, engineMemory(world.s3, world.engine)),
    guarded(world, "buckets", Buckets, bucketsMemory(world.s3)),
    guarded(world, "trusts", Trusts, trustsMemory(world.tenants)),
    guarded(world, "vault", Vault, vaultMemory(world.tenants)),
    guarded(
      world,
      "shares",
      Shares,
      sharesEmbedded({ root: world.root, snapshots: () => world.has_snapshots }),
    ),
    Logger.layer([
      Logger.map(Logger.formatLogFmt, (line) => {
        world.logged.push(line)
      }),
    ]),
  ).pipe(Layer.provideMerge(logThatMayBeDown(world)))

/** A test with its own environment, in which the target is registered and its enrollment queued. */
export const inWorld = (
  name: string,
  body: (world: World) => Effect.Effect<void, unknown, InWorld | Scope.Scope>,
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { tenants, bucket } = world
      const keep = (what: string, payload: Redacted.Redacted<string>) =>
        keepSecret(tenants.secrets, project_id, what, Redacted.value(payload))
      const vault_secret_map = {
        access_key: keep("access", bucket.access_key),
        secret_key: keep("secret", bucket.secret_key),
      }
      const { endpoint, bucket: bucket_name } = bucket
      const registered = { ...target, endpoint, bucket: bucket_name, vault_secret_map }
      yield* Effect.andThen(
        send(createTarget(target_id, registered, 10)),
        Effect.suspend(() => body(world)),
      ).pipe(
        Effect.provide(worldLayer(world)),
        Effect.provideService(References.MinimumLogLevel, "Debug"),
      )
    }).pipe(Effect.scoped),
  )

export const new_password = Effect.sync(() => Redacted.make(`password-${randomUUID()}`))

export const agentOptions: AgentOptions = {
  worker_id,
  registration: {
    project_id: ProjectId.make("workers"),
    domain_id: null,
    hostname: "host-1",
    image_version: "image-1",
    capacity_slots: 2,
  },
  shape: "A",
  require_fips_profile: false,
  new_password,
  subprocess_timeout_seconds: 30,
  max_command_duration_seconds: 60,
  heartbeat_interval_seconds: 0.5,
  scratch_dir: join(tmpdir(), `almanac-scratch-${process.pid}`),
}

/** A worker with an agent, running until the scope closes. */
export const worker = (options: Partial<AgentOptions> = {}) =>
  startAgent({ ...agentOptions, ...options })

/** Assigns a job to a worker as the conductor does; returns its hold and its order. */
export const assign = Effect.fnUntraced(function* (job_id: JobId, id: WorkerId = worker_id) {
  const job = yield* factsOf(job_id)
  const held = yield* Effect.exit(leaseNow)
  const fence = Exit.isSuccess(held) ? held.value.fence + 1 : 1
  const hold: Hold = { worker_id: WorkerId.make(id), fence }
  if ((yield* jobNow(job_id)).attempt === 1) yield* send(admitJob(job))
  yield* send(assignJob(job, hold))
  const order = yield* jobOrder(yield* Log, job, hold)
  assert(order !== undefined)
  return { hold, order }
})

/** Assigns the job and offers it to the worker. */
export const give = Effect.fnUntraced(function* (job_id: JobId, id: WorkerId = worker_id) {
  const { hold, order } = yield* assign(job_id, id)
  yield* (yield* Agents).offer(id, order)
  return hold
})

/** Polls every 5 ms until the condition holds, for at most 10 s. */
export const until = <E, R>(holds: Effect.Effect<boolean, E, R>, what = "it holds") =>
  Effect.gen(function* () {
    const met = yield* Effect.repeat(holds, {
      until: (met) => met,
      schedule: Schedule.spaced(5),
      times: 2000,
    })
    assert.isTrue(met, what)
  })

/** Waits until the job has stopped on the worker and its slot is free. */
export const settled = Effect.fnUntraced(function* (job_id: JobId, id: WorkerId = worker_id) {
  yield* until(
    Effect.map(workerNow(id), ({ running_jobs }) =>
      running_jobs.every((slot) => slot.job_id !== job_id),
    ),
    "the job's slot is free",
  )
  return yield* jobNow(job_id)
})

export const ran = (job_id: JobId) => Effect.andThen(give(job_id), settled(job_id))

/** Blocks all further calls with this name; returns an effect that waits for the first one. */
export const hold = Effect.fnUntraced(function* (world: World, call: string) {
  const came = yield* Deferred.make<void>()
  const held = Effect.andThen(Deferred.succeed(came, undefined), Effect.never)
  world.instead.set(call, held)
  return Deferred.await(came)
})

/** Enrolls the target through its own job, and requests a backup of its share. */
export const enrolledWith = Effect.fnUntraced(function* (request: Partial<BackupRequest> = {}) {
  const { state } = yield* ran(enroll_job_id)
  assert.equal(state, "available")
  const body: BackupRequest = {
    backup_id,
    job_id: backup_job_id,
    project_id,
    share_id,
    target_id,
    policy_id: null,
    crash_consistent_wanted: null,
    tick: null,
    max_retries: 1,
    ...request,
  }
  yield* send(requestBackup(body, 10))
})

/** Asserts that a job has left no slot, hold, engine or source. */
export const assertNothingLeft = Effect.fnUntraced(function* (world: World) {
  assert.deepEqual((yield* workerNow()).running_jobs, [])
  assert.deepEqual((yield* leaseNow).holds, [])
  assert.equal(world.engine.running, 0)
  const left = Object.keys(yield* readTree(world.root))
  assert.deepEqual(
    left.filter((name) => name.startsWith(".snapshots/")),
    [],
  )
})

/** The snapshots that the engine lists in the target's repository. */
export const snapshotsOf = Effect.fnUntraced(function* (world: World) {
  const { repository_password_ref } = yield* targetNow
  const id = repository_password_ref?.slice(-36) ?? ""
  const payload = world.tenants.secrets.get(id)?.payload ?? ""
  const repository = { ...world.bucket, password: Redacted.make(payload) }
  return yield* (yield* Engine).snapshots(repository)
})

/** The event types of one aggregate; for an advance, the step it led to. */
export const happened = Effect.fnUntraced(function* (noun: string, id: string) {
  const commits = yield* Stream.runCollect((yield* Log).read(`share-protection.${noun}.${id}`))
  return commits.flatMap(({ commit }) =>
    commit.events.map((event) => (event.type === "JobAdvanced" ? toOf(event) : event.type)),
  )
})

const toOf = (event: object) => ("to" in event ? String(event.to) : "")
