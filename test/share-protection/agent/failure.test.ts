import { rm } from "node:fs/promises"
import { assert, describe } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { retryJob } from "#actors/share-protection/jobs/transitions.ts"
import { EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { requestRestore } from "#actors/share-protection/requests.ts"
import type { JobStep } from "#schemas/share-protection/job.ts"
import {
  BackendUnavailable,
  type ErrorCode,
  NetworkStrategyPrecondition,
  RepositoryLocked,
  SnapshotStrategyPrecondition,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import {
  assertNothingLeft,
  enrolledWith,
  happened,
  type InWorld,
  inWorld,
  project_folder,
  ran,
  snapshotsOf,
  type World,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  backupNow,
  enroll_job_id,
  factsOf,
  policyNow,
  restore_job_id,
  restoreNow,
  send,
  targetNow,
} from "../../world/share-protection/deployment.ts"
import { openBucket } from "../../world/share-protection/memory/buckets.ts"
import { keepSecret } from "../../world/share-protection/memory/vault.ts"
import {
  project_id,
  restore,
  restore_id,
  share_id,
  target_id,
} from "../../world/share-protection/samples.ts"

type Trouble = (world: World) => Effect.Effect<unknown, unknown, InWorld | Scope.Scope>

type Told = readonly [ErrorCode, "tenant" | "operator"]

/** A failure, its step, its error, and whether it provably left no snapshot. */
type Failing = readonly [what: string, trouble: Trouble, step: JobStep, Told, proven?: false]

const instead =
  (call: string, failure: unknown): Trouble =>
  ({ instead }) =>
    Effect.sync(() => instead.set(call, Effect.fail(failure)))

const dies =
  (call: string): Trouble =>
  ({ instead }) =>
    Effect.sync(() => instead.set(call, Effect.die(new Error("a mistake of ours"))))

const away = new BackendUnavailable({ detail: "It does not answer." })
const denied = new TrustAccessDenied({ detail: "It is denied." })
const broken = new EngineFailed({ detail: "The engine exited with 1.", wrote_nothing: false })
const never_began = new EngineFailed({ detail: "There is no repository.", wrote_nothing: true })
const locked = new RepositoryLocked({ detail: "The engine's own lock is held." })
const no_export = new NetworkStrategyPrecondition({ detail: "No export location." })
const no_snapshot = new SnapshotStrategyPrecondition({ detail: "No snapshots." })

const when =
  (moment: "before" | "after", fails: EngineFailed | RepositoryLocked): Trouble =>
  ({ engine }) =>
    Effect.sync(() => engine.next.set("backup", { fails, when: moment }))

const both =
  (...troubles: ReadonlyArray<Trouble>): Trouble =>
  (world) =>
    Effect.forEach(troubles, (trouble) => trouble(world))

const takeAwayShare: Trouble = (world) =>
  Effect.promise(() => rm(project_folder(world), { recursive: true }))

const change =
  (change: (world: World) => void): Trouble =>
  (world) =>
    Effect.sync(() => change(world))

const unreachable: Trouble = ({ s3, bucket }) =>
  Effect.map(openBucket(s3, bucket), (memory) => {
    memory.is_reachable = false
  })

const not_found: Told = ["svc.not_found", "tenant"]
const unavailable: Told = ["svc.backend_unavailable", "operator"]
const no_network: Told = ["svc.network_strategy_precondition", "operator"]
const no_source: Told = ["svc.snapshot_strategy_precondition", "operator"]
const no_access: Told = ["svc.trust_access_denied", "tenant"]
const engine_error: Told = ["svc.engine_error", "operator"]
const repository_locked: Told = ["svc.repository_locked", "operator"]
const internal: Told = ["svc.internal_error", "operator"]

const unreadable: Trouble = change(({ instead }) => {
  instead.set("shares.find", Effect.succeed({ id: share_id, status: "error" }))
})
const revoke: Trouble = change(({ tenants }) => tenants.trusts.clear())
const removeSecrets: Trouble = change(({ tenants }) => tenants.secrets.clear())
const changeKeys: Trouble = change(({ s3 }) => {
  for (const memory of s3.values()) Object.assign(memory, { secret_key: "another" })
})
const kill: Trouble = change(({ engine }) => engine.next.set("backup", { dies: true }))
const list_nothing = instead("engine.snapshots", broken)

const failings: ReadonlyArray<Failing> = [
  ["the share is gone", takeAwayShare, "provisioning_network", not_found],
  [
    "the shares cannot be queried",
    instead("shares.find", away),
    "provisioning_network",
    unavailable,
  ],
  ["the share cannot be read now", unreadable, "provisioning_network", no_network],
  [
    "the share has no export",
    instead("shares.prepare", no_export),
    "provisioning_source",
    no_network,
  ],
  [
    "no snapshot can be made",
    instead("shares.prepare", no_snapshot),
    "provisioning_source",
    no_source,
  ],
  ["a snapshot does not come", instead("shares.prepare", away), "provisioning_source", unavailable],
  ["the shares have a mistake", dies("shares.prepare"), "provisioning_source", internal],
  ["the trust was revoked", revoke, "connecting_repository", no_access],
  ["the trusts are offline", instead("trusts.redeem", away), "connecting_repository", unavailable],
  ["a secret was removed", removeSecrets, "connecting_repository", no_access],
  ["the vault is offline", instead("vault.read", away), "connecting_repository", unavailable],
  ["the keys were changed in S3", changeKeys, "connecting_repository", no_access],
  ["the bucket is offline", unreachable, "connecting_repository", unavailable],
  ["the engine ends before it wrote", when("before", broken), "transferring", engine_error],
  ["the engine ends after it wrote", when("after", broken), "transferring", engine_error, false],
  ["the engine is killed", kill, "transferring", engine_error],
  [
    "the engine ends, and its snapshots cannot be listed",
    both(when("before", broken), list_nothing),
    "transferring",
    engine_error,
    false,
  ],
  [
    "the engine never started, which needs no list",
    both(when("before", never_began), list_nothing),
    "transferring",
    engine_error,
  ],
  ["the engine's lock is held", when("before", locked), "transferring", repository_locked],
  ["the password opens nothing", instead("engine.backup", denied), "transferring", no_access],
  ["the engine has a mistake", dies("engine.backup"), "transferring", internal],
]

describe("a backup fails", () => {
  for (const [what, trouble, step, [code, category], wrote_nothing = true] of failings) {
    inWorld(`in ${step}, when ${what}: ${code}`, (world) =>
      Effect.gen(function* () {
        yield* worker()
        yield* enrolledWith()
        yield* trouble(world)
        const { state, error } = yield* ran(backup_job_id)
        assert.equal(state, "error")
        assert.deepInclude(error, { code, category: `${category}_action_required`, wrote_nothing })
        if (code === "svc.internal_error") {
          assert.equal(error?.detail, "The worker failed unexpectedly; its log has the cause.")
          assert.match(world.logged.join("\n"), /a mistake of ours/)
        }
        const steps = yield* happened("job", backup_job_id)
        const last = steps.at(-2) === "JobStarted" ? "provisioning_network" : steps.at(-2)
        assert.deepEqual([last, steps.at(-1)], [step, "JobFailed"])
        const backup = yield* backupNow
        assert.deepEqual([backup.state, backup.reason], ["error", error?.detail])
        assert.isNull((yield* policyNow).backup)
        world.instead.clear()
        if (code !== "svc.not_found") yield* assertNothingLeft(world)
      }),
    )
  }
})

describe("a backup does not fail", () => {
  for (const [what, call] of [
    ["the lock's end is unknown", "buckets.protectedUntil"],
    ["the bucket is not measured", "buckets.usage"],
  ] as const) {
    inWorld(`when ${what}`, (world) =>
      Effect.gen(function* () {
        yield* worker()
        yield* enrolledWith()
        world.instead.set(call, Effect.fail(away))
        assert.equal((yield* ran(backup_job_id)).state, "available")
        assert.isNull((yield* backupNow).protected_until)
        yield* assertNothingLeft(world)
      }),
    )
  }

  inWorld("when its source cannot be released after three attempts, which is logged", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      world.instead.set("shares.release", Effect.fail(away))
      assert.equal((yield* ran(backup_job_id)).state, "available")
      assert.lengthOf(
        world.calls.filter((call) => call === "shares.release"),
        3,
      )
      assert.match(world.logged.join("\n"), /the next sweep removes it/)
    }),
  )

  inWorld("when some files cannot be read: the backup is partial", (world) =>
    Effect.gen(function* () {
      yield* worker()
      world.has_snapshots = false
      yield* enrolledWith()
      world.engine.unreadable.add(`${project_folder(world)}/a.txt`)
      assert.equal((yield* ran(backup_job_id)).state, "available")
      const [snapshot] = yield* snapshotsOf(world)
      assert.equal(snapshot?.files, 3)
    }),
  )
})

const checks = [
  "reachability",
  "read_write",
  "addressing_style",
  "versioning",
  "object_lock",
  "lifecycle",
]

describe("an enrollment fails", () => {
  for (const check of checks) {
    inWorld(`when the bucket fails ${check}: svc.target_preflight_failed, naming it`, (world) =>
      Effect.gen(function* () {
        yield* worker()
        const failure = new TargetPreflightFailed({ detail: `${check}: it failed.` })
        world.instead.set("buckets.preflight", Effect.fail(failure))
        const { state, error } = yield* ran(enroll_job_id)
        assert.equal(state, "error")
        const category = "tenant_action_required"
        const detail = `${check}: it failed.`
        assert.deepInclude(error, { code: "svc.target_preflight_failed", category, detail })
        const target = yield* targetNow
        assert.deepEqual([target.status, target.reason], ["error", detail])
        assert.notInclude(world.calls, "engine.init")
        assert.notInclude(world.calls, "vault.store")
        yield* assertNothingLeft(world)
      }),
    )
  }

  inWorld("when a FIPS profile is required, before it makes anything", (world) =>
    Effect.gen(function* () {
      yield* worker({ require_fips_profile: true })
      const { error } = yield* ran(enroll_job_id)
      const category = "operator_action_required"
      assert.deepInclude(error, { code: "svc.engine_error", category })
      assert.match(error?.detail ?? "", /require_fips_profile/)
      assert.deepEqual(world.calls, [])
      assert.equal((yield* targetNow).status, "error")
    }),
  )

  for (const [call, failure, code] of [
    ["engine.init", broken, "svc.engine_error"],
    ["engine.init", denied, "svc.trust_access_denied"],
    ["vault.find", away, "svc.backend_unavailable"],
    ["vault.store", denied, "svc.trust_access_denied"],
  ] as const) {
    inWorld(`when ${call} does (${code}), and its next attempt does not`, (world) =>
      Effect.gen(function* () {
        yield* worker()
        world.instead.set(call, Effect.fail(failure))
        assert.equal((yield* ran(enroll_job_id)).error?.code, code)
        yield* assertNothingLeft(world)
        world.instead.clear()
        const job = yield* factsOf(enroll_job_id)
        yield* send(retryJob(job, { automatic: false, policy_id: null }))
        assert.equal((yield* ran(enroll_job_id)).state, "available")
        assert.equal((yield* targetNow).status, "available")
        assert.lengthOf([...world.tenants.secrets], 3)
      }),
    )
  }

  inWorld(
    "when the response of vault.store is lost, and the next attempt finds that secret",
    (world) =>
      Effect.gen(function* () {
        yield* worker()
        let href = ""
        const stored = Effect.suspend(() => {
          const name = `almanac-repository-${target_id}`
          href = keepSecret(world.tenants.secrets, project_id, name, "stored")
          return Effect.fail(away)
        })
        world.instead.set("vault.store", stored)
        assert.equal((yield* ran(enroll_job_id)).error?.code, "svc.backend_unavailable")
        const job = yield* factsOf(enroll_job_id)
        yield* send(retryJob(job, { automatic: false, policy_id: null }))
        assert.equal((yield* ran(enroll_job_id)).state, "available")
        assert.equal((yield* targetNow).repository_password_ref, href)
        assert.lengthOf(
          world.calls.filter((call) => call === "vault.store"),
          1,
        )
      }),
  )
})

describe("a restore", () => {
  const sendRequest = Effect.fnUntraced(function* (request: {
    mode?: "in_place"
    sub_path?: string
  }) {
    yield* worker()
    yield* enrolledWith()
    yield* ran(backup_job_id)
    const force = request.mode === "in_place"
    yield* send(
      requestRestore(restore_id, { ...restore, ...request, force, job_id: restore_job_id }),
    )
  })

  for (const [what, call, failure, code] of [
    ["no share can be made", "shares.create", away, "svc.backend_unavailable"],
    ["the engine does", "engine.restore", broken, "svc.engine_error"],
  ] as const) {
    inWorld(`fails when ${what}: ${code}`, (world) =>
      Effect.gen(function* () {
        yield* sendRequest({})
        world.instead.set(call, Effect.fail(failure))
        const { state, error } = yield* ran(restore_job_id)
        assert.equal(state, "error")
        assert.deepInclude(error, { code, wrote_nothing: true })
        assert.equal((yield* restoreNow).state, "error")
        assert.deepEqual((yield* backupNow).restores, [])
        yield* assertNothingLeft(world)
      }),
    )
  }

  inWorld("fails in place if the share is gone, and makes none", (world) =>
    Effect.gen(function* () {
      yield* sendRequest({ mode: "in_place" })
      yield* takeAwayShare(world)
      assert.equal((yield* ran(restore_job_id)).error?.code, "svc.not_found")
      assert.notInclude(world.calls, "shares.create")
    }),
  )

  inWorld("fails if the sub path is not in the backup", (world) =>
    Effect.gen(function* () {
      yield* sendRequest({ sub_path: "/nowhere" })
      const { error } = yield* ran(restore_job_id)
      const category = "tenant_action_required"
      assert.deepInclude(error, { code: "svc.not_found", category })
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("restores a lost share as a new one", (world) =>
    Effect.gen(function* () {
      yield* sendRequest({})
      yield* takeAwayShare(world)
      assert.equal((yield* ran(restore_job_id)).state, "available")
    }),
  )
})
