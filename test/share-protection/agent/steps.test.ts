import { assert, describe } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import {
  queueTargetJob,
  requestRestore,
  startFormatUpgrade,
} from "#actors/share-protection/requests.ts"
import { readTags } from "#actors/share-protection/snapshot-tag.ts"
import { Log } from "#events/log.ts"
import { RestoreCompleted } from "#events/share-protection/restore.ts"
import { EngineSnapshotId, ExpireBackup } from "#schemas/share-protection/backup.ts"
import { job_steps } from "#schemas/share-protection/job.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { readTree, writeTree } from "../../world/folder.ts"
import {
  assertNothingLeft,
  assign,
  enrolledWith,
  happened,
  inWorld,
  project_folder,
  ran,
  settled,
  share_tree,
  snapshotsOf,
  type World,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  backupNow,
  enroll_job_id,
  policyNow,
  restore_job_id,
  restoreNow,
  send,
  targetNow,
} from "../../world/share-protection/deployment.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import { openBucket } from "../../world/share-protection/memory/buckets.ts"
import { makeRepository } from "../../world/share-protection/memory/engine.ts"
import { keepSecret } from "../../world/share-protection/memory/vault.ts"
import {
  backup_id,
  jobId,
  project_id,
  restore,
  restore_id,
  secretRef,
  share_id,
  target_id,
} from "../../world/share-protection/samples.ts"

/** All events of a job that completes on a worker. */
const whole_course = [
  "JobQueued",
  "JobAssigned",
  "JobStarted",
  ...job_steps.slice(1),
  "JobCompleted",
]

describe("an enrollment", () => {
  inWorld("completes: makes the repository, with its password in the tenant's vault", (world) =>
    Effect.gen(function* () {
      yield* worker()
      const job = yield* ran(enroll_job_id)
      assert.equal(job.state, "available")
      assert.deepEqual(yield* happened("job", enroll_job_id), whole_course)
      const target = yield* targetNow
      assert.equal(target.status, "available")
      assert.deepInclude(target, { format: 2, engine_profile: "memory/none" })
      assert.deepInclude(target.capabilities, { object_lock: true, addressing_mode: "path" })
      const password = [...world.tenants.secrets.values()].at(-1)
      assert.deepInclude(password, { project_id, name: `almanac-repository-${target_id}` })
      assert.deepEqual(yield* snapshotsOf(world), [])
      assert.include(yield* happened("target", target_id), "TargetUsageMeasured")
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("finds the existing repository by the name of its password", (world) =>
    Effect.gen(function* () {
      const name = `almanac-repository-${target_id}`
      const href = keepSecret(world.tenants.secrets, project_id, name, "old-password")
      const repository = { ...world.bucket, password: Redacted.make("old-password") }
      yield* makeRepository(world.s3, repository, 1)
      yield* worker()
      assert.equal((yield* ran(enroll_job_id)).state, "available")
      const { format, repository_password_ref } = yield* targetNow
      assert.deepEqual([format, repository_password_ref], [1, href])
    }),
  )
})

/** Runs an enrollment whose order contains these passwords of former targets. */
const enrolledAfter = Effect.fnUntraced(function* (...former_password_refs: ReadonlyArray<string>) {
  const { order } = yield* assign(enroll_job_id)
  yield* (yield* Agents).offer(worker_id, { ...order, former_password_refs } as JobOrder)
  return yield* settled(enroll_job_id)
})

describe("an enrollment of a deleted target's bucket", () => {
  inWorld("opens the existing repository and leaves it unchanged", (world) =>
    Effect.gen(function* () {
      const { secrets } = world.tenants
      const wrong = keepSecret(secrets, project_id, "almanac-repository-other", "wrong")
      const href = keepSecret(secrets, project_id, "almanac-repository-former", "old-password")
      const repository = { ...world.bucket, password: Redacted.make("old-password") }
      yield* makeRepository(world.s3, repository, 1)
      const before = [...(yield* openBucket(world.s3, world.bucket)).objects.keys()]
      yield* worker()
      assert.equal((yield* enrolledAfter(secretRef(9), wrong, href)).state, "available")
      assert.equal((yield* targetNow).repository_password_ref, href)
      const after = yield* openBucket(world.s3, world.bucket)
      for (const key of before) assert.isTrue(after.objects.has(key), key)
      const names = [...secrets.values()].map(({ name }) => name)
      assert.notInclude(names, `almanac-repository-${target_id}`)
    }),
  )

  inWorld("is rejected if its password cannot be read", (world) =>
    Effect.gen(function* () {
      const href = keepSecret(world.tenants.secrets, "another-project", "former", "old-password")
      const repository = { ...world.bucket, password: Redacted.make("old-password") }
      yield* makeRepository(world.s3, repository, 1)
      yield* worker()
      const { state, error } = yield* enrolledAfter(href)
      assert.deepEqual([state, error?.code], ["error", "svc.trust_access_denied"])
    }),
  )
})

/** Runs an enrollment of a bucket that another target owns. */
const enrolledBeside = Effect.gen(function* () {
  yield* worker()
  const { order } = yield* assign(enroll_job_id)
  yield* (yield* Agents).offer(worker_id, { ...order, is_taken: true } as JobOrder)
  return yield* settled(enroll_job_id)
})

describe("an enrollment of a bucket of another target", () => {
  inWorld("is rejected, and makes nothing there", (world) =>
    Effect.gen(function* () {
      const { state, error } = yield* enrolledBeside
      assert.deepEqual([state, error?.code], ["error", "svc.conflict"])
      assert.include((yield* targetNow).reason ?? "", "another target:")
      assert.equal((yield* targetNow).status, "error")
      assert.notInclude(world.calls, "engine.init")
      const names = [...world.tenants.secrets.values()].map(({ name }) => name)
      assert.notInclude(names, `almanac-repository-${target_id}`)
    }),
  )

  inWorld("does not reveal that without valid keys", (world) =>
    Effect.gen(function* () {
      world.instead.set("buckets.preflight", new TrustAccessDenied({ detail: "No." }))
      assert.equal((yield* enrolledBeside).error?.code, "svc.trust_access_denied")
    }),
  )
})

describe("a backup", () => {
  inWorld("completes: a snapshot of the share with its tags", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      assert.equal((yield* ran(backup_job_id)).state, "available")
      assert.deepEqual(yield* happened("job", backup_job_id), whole_course)
      const backup = yield* backupNow
      assert.equal(backup.state, "available")
      const [snapshot, ...more] = yield* snapshotsOf(world)
      assert.deepEqual(more, [])
      assert.equal(backup.engine_snapshot_id, snapshot?.engine_snapshot_id)
      assert.equal(snapshot?.host, share_id)
      assert.deepInclude(readTags(snapshot?.tags ?? []), {
        value: { backup_id, project_id, share_id, policy_id: null, crash_consistent: true },
      })
      assert.equal((yield* policyNow).backup, null)
      const last = yield* (yield* Log).load(`share-protection.backup.${backup_id}`)
      const made = { files: 4, crash_consistent: true, partial: false, protected_until: null }
      assert.deepInclude(last?.commit.events.at(-1), { type: "BackupCompleted", ...made })
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("reads the live share if it has no snapshots", (world) =>
    Effect.gen(function* () {
      world.has_snapshots = false
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const [snapshot] = yield* snapshotsOf(world)
      assert.deepInclude(readTags(snapshot?.tags ?? []), {
        value: { backup_id, project_id, share_id, policy_id: null, crash_consistent: false },
      })
    }),
  )

  inWorld("records the earliest end of its locks", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      const memory = yield* openBucket(world.s3, world.bucket)
      Object.assign(memory, { lock_ms: 3_600_000 })
      for (const object of memory.objects.values()) object.locked_until = 4_000_000_000_000
      const before = Date.now()
      yield* ran(backup_job_id)
      const until = Date.parse((yield* backupNow).protected_until ?? "")
      assert.isAtLeast(until, before + 3_600_000)
      assert.isBelow(until, before + 3_660_000)
    }),
  )
})

type RestoreRequest = Parameters<typeof requestRestore>[1]

/** Modifies the files, restores the backup, and returns the result. */
const restored = Effect.fnUntraced(function* (world: World, request: Partial<RestoreRequest>) {
  yield* worker()
  yield* enrolledWith()
  yield* ran(backup_job_id)
  yield* writeTree(project_folder(world), { "a.txt": "spoilt", "later.txt": "written later" })
  yield* send(requestRestore(restore_id, { ...restore, ...request, job_id: restore_job_id }))
  const job = yield* ran(restore_job_id)
  assert.equal(job.state, "available")
  assert.deepEqual(yield* happened("job", restore_job_id), whole_course)
  assert.deepEqual((yield* backupNow).restores, [])
  yield* assertNothingLeft(world)
  const last = yield* (yield* Log).load(`share-protection.restore.${restore_id}`)
  return Schema.decodeUnknownSync(RestoreCompleted)(last?.commit.events.at(-1))
})

describe("a restore", () => {
  inWorld("completes into a new share with the backed-up files", (world) =>
    Effect.gen(function* () {
      const { new_share_id, files } = yield* restored(world, {})
      assert.equal(files, 4)
      assert.isString(new_share_id)
      assert.deepEqual(yield* readTree(project_folder(world, String(new_share_id))), share_tree)
      assert.equal((yield* readTree(project_folder(world)))["a.txt"], "spoilt")
      assert.equal((yield* restoreNow).state, "available")
    }),
  )

  inWorld("completes in place, and deletes files that were not backed up", (world) =>
    Effect.gen(function* () {
      const { new_share_id } = yield* restored(world, { mode: "in_place", force: true })
      assert.isNull(new_share_id)
      assert.deepEqual(yield* readTree(project_folder(world)), share_tree)
    }),
  )

  inWorld("in place keeps paths that the backup could not read, and reports them", (world) =>
    Effect.gen(function* () {
      world.has_snapshots = false
      for (const name of ["a.txt", "docs/b.txt"]) {
        world.engine.unreadable.add(`${project_folder(world)}/${name}`)
      }
      const in_place = { mode: "in_place", sub_path: "/docs", force: true } as const
      const { left_alone } = yield* restored(world, in_place)
      assert.deepEqual(left_alone, ["/docs/b.txt"])
      const after = yield* readTree(project_folder(world))
      assert.deepInclude(after, { "a.txt": "spoilt", "docs/b.txt": share_tree["docs/b.txt"] })
    }),
  )

  inWorld("restores a sub path in its place", (world) =>
    Effect.gen(function* () {
      const { new_share_id, files } = yield* restored(world, { sub_path: "/docs/b.txt" })
      assert.equal(files, 1)
      assert.deepEqual(yield* readTree(project_folder(world, String(new_share_id))), {
        "docs/b.txt": "in a folder",
      })
    }),
  )
})

/** Runs a job of the service itself on the enrolled target. */
const ownJob = Effect.fnUntraced(function* (
  job_type: "retention" | "maintenance",
  forget: ReadonlyArray<{ backup_id: typeof backup_id; engine_snapshot_id: string }> = [],
  job_id = jobId(9),
) {
  yield* send([queueTargetJob(job_id, job_type, target_id, project_id, forget)])
  const job = yield* ran(job_id)
  assert.equal(job.state, "available")
  assert.deepEqual(yield* happened("job", job_id), whole_course)
})

describe("the service's own jobs", () => {
  inWorld("forget snapshots", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const [snapshot] = yield* snapshotsOf(world)
      const engine_snapshot_id = EngineSnapshotId.make(snapshot?.engine_snapshot_id ?? "")
      yield* send([address(Backup, backup_id, ExpireBackup.make({}))])
      yield* ownJob("retention", [{ backup_id, engine_snapshot_id }])
      assert.deepEqual(yield* snapshotsOf(world), [])
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("maintain the repository, and measure it again", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const memory = yield* openBucket(world.s3, world.bucket)
      memory.objects.set("data/of-nothing", { bytes: new Uint8Array(9), locked_until: undefined })
      yield* ownJob("maintenance")
      assert.isFalse(memory.objects.has("data/of-nothing"))
      assert.lengthOf(yield* snapshotsOf(world), 1)
      const measured = (yield* happened("target", target_id)).filter((type) => /Usage/.test(type))
      assert.lengthOf(measured, 3)
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("extend the locks of needed objects by the bucket's default retention", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const memory = yield* openBucket(world.s3, world.bucket)
      yield* ownJob("maintenance")
      assert.isUndefined(memory.objects.get("keys/1")?.locked_until)
      assert.isNull((yield* targetNow).protected_until)
      memory.lock_ms = 3_600_000
      const before = Date.now()
      yield* ownJob("maintenance", [], jobId(10))
      const until = memory.objects.get("keys/1")?.locked_until ?? 0
      assert.isAtLeast(until, before + 3_600_000)
      assert.isAtMost(until, Date.now() + 3_600_000)
      assert.equal((yield* targetNow).protected_until, new Date(until).toISOString())
    }),
  )

  inWorld("remove the remains of the engine's locks", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const memory = yield* openBucket(world.s3, world.bucket)
      const left = () => [...memory.versions.keys()].filter((key) => key.startsWith("locks/"))
      assert.isNotEmpty(left())
      yield* ownJob("maintenance")
      assert.isEmpty(left())
    }),
  )

  inWorld("remove the lock that a dead engine left", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      world.engine.next.set("backup", { dies: true })
      assert.equal((yield* ran(backup_job_id)).state, "error")
      yield* ownJob("maintenance")
      assert.include(world.engine.calls, "unlock")
    }),
  )

  inWorld("upgrade an old repository to the newest format", (world) =>
    Effect.gen(function* () {
      const name = `almanac-repository-${target_id}`
      keepSecret(world.tenants.secrets, project_id, name, "old-password")
      const repository = { ...world.bucket, password: Redacted.make("old-password") }
      yield* makeRepository(world.s3, repository, 1)
      yield* worker()
      yield* ran(enroll_job_id)
      const job_id = jobId(9)
      yield* send(startFormatUpgrade(target_id, project_id, job_id))
      assert.equal((yield* ran(job_id)).state, "available")
      assert.deepEqual(yield* happened("job", job_id), whole_course)
      const { format, upgrading } = yield* targetNow
      assert.deepEqual([format, upgrading], [2, false])
      yield* assertNothingLeft(world)
    }),
  )
})
