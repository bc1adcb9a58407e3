/** Jobs that are not in the document: plan, restore test and undelete. */
import { existsSync, readdirSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import {
  queueTargetJob,
  requestBackup,
  requestRestore,
  testBackup,
  undeleteBackup,
} from "#actors/share-protection/requests.ts"
import { Log } from "#events/log.ts"
import { BackupRestoreTested } from "#events/share-protection/backup.ts"
import { RestoreCompleted } from "#events/share-protection/restore.ts"
import { EngineSnapshotId, ExpireBackup } from "#schemas/share-protection/backup.ts"
import { planned_bytes_max } from "#schemas/share-protection/restore.ts"
import { readTree, writeTree } from "../../world/folder.ts"
import {
  agentOptions,
  assertNothingLeft,
  enrolledWith,
  give,
  hold,
  inWorld,
  project_folder,
  ran,
  share_tree,
  snapshotsOf,
  type World,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  backupNow,
  jobNow,
  restore_job_id,
  send,
} from "../../world/share-protection/deployment.ts"
import { openBucket } from "../../world/share-protection/memory/buckets.ts"
import {
  backup_id,
  jobId,
  other_backup_id,
  other_restore_id,
  project_id,
  restore,
  restore_id,
  share_id,
  target_id,
} from "../../world/share-protection/samples.ts"

const last = Effect.fnUntraced(function* (stream: string) {
  const recorded = yield* (yield* Log).load(`share-protection.${stream}`)
  return recorded?.commit.events.at(-1)
})

/** Backs up the current files and then modifies them. */
const spoilt = Effect.fnUntraced(function* (world: World) {
  yield* worker()
  yield* enrolledWith()
  yield* ran(backup_job_id)
  yield* writeTree(project_folder(world), { "a.txt": "spoilt", "later.txt": "written later" })
})

const inPlace = { mode: "in_place", force: true } as const

const restoreBy = Effect.fnUntraced(function* (
  request: Partial<Parameters<typeof requestRestore>[1]>,
  id = restore_id,
  job_id = restore_job_id,
) {
  yield* send(requestRestore(id, { ...restore, ...inPlace, ...request, job_id }))
  return yield* ran(job_id)
})

const planOf = Effect.map(last(`restore.${restore_id}`), (event) => {
  const { plan, files, bytes } = Schema.decodeUnknownSync(RestoreCompleted)(event)
  assert.deepEqual([files, bytes], [0, 0])
  assert(plan !== null)
  return plan
})

describe("a dry run of a restore in place", () => {
  inWorld("returns its plan and changes nothing", (world) =>
    Effect.gen(function* () {
      yield* spoilt(world)
      const before = yield* readTree(project_folder(world))
      assert.equal((yield* restoreBy({ dry_run: true, force: false })).state, "available")
      const { actions, ...plan } = yield* planOf
      assert.deepInclude(plan, { created: 0, updated: 1, deleted: 1 })
      assert.deepEqual(actions, [
        { action: "updated", path: "/a.txt" },
        { action: "deleted", path: "/later.txt" },
      ])
      assert.deepEqual(yield* readTree(project_folder(world)), before)
      assert.deepEqual((yield* backupNow).restores, [])
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("lists as many actions as fit in an event, and counts the rest", (world) =>
    Effect.gen(function* () {
      yield* spoilt(world)
      const deep = Array.from({ length: 8 }, () => "d".repeat(250)).join("/")
      const many = Array.from({ length: 100 }, (_, n) => [`${deep}/${n}`, ""] as const)
      yield* writeTree(project_folder(world), Object.fromEntries(many))
      assert.equal((yield* restoreBy({ dry_run: true })).state, "available")
      const { actions, deleted } = yield* planOf
      assert.isAtLeast(deleted, 100)
      assert.isBelow(actions.length, 40)
      assert.isAtMost(JSON.stringify(actions).length, planned_bytes_max + actions.length + 1)
      assert.isAbove(actions.length, 20)
    }),
  )

  for (const beyond of [0, 1]) {
    const title = beyond === 0 ? "lists an action up to" : "leaves out an action one byte beyond"
    inWorld(`${title} the bound in bytes`, (world) =>
      Effect.gen(function* () {
        yield* spoilt(world)
        const names = Array.from({ length: 136 }, (_, n) => `${n}`.padStart(195, "0"))
        const last = "e".repeat(65 + beyond)
        const paths = [...names, last].map((name) => `${"d".repeat(250)}/${name}`)
        yield* writeTree(project_folder(world), Object.fromEntries(paths.map((path) => [path, ""])))
        assert.equal((yield* restoreBy({ dry_run: true })).state, "available")
        const { actions } = yield* planOf
        assert.equal(actions.at(-1)?.path, `/${paths.at(-1 - beyond)}`)
        const bytes = actions.reduce((sum, action) => sum + JSON.stringify(action).length, 0)
        if (beyond === 0) assert.equal(bytes, 64 * 1024)
      }),
    )
  }
})

describe("a restore in place with a plan hash", () => {
  inWorld("runs if the plan is unchanged", (world) =>
    Effect.gen(function* () {
      yield* spoilt(world)
      yield* restoreBy({ dry_run: true })
      const { hash: plan_hash } = yield* planOf
      const { state } = yield* restoreBy({ plan_hash }, other_restore_id, jobId(11))
      assert.equal(state, "available")
      assert.deepEqual(yield* readTree(project_folder(world)), share_tree)
    }),
  )

  inWorld("changes nothing if the share has changed", (world) =>
    Effect.gen(function* () {
      yield* spoilt(world)
      const plan_hash = "0".repeat(64)
      const { state, error } = yield* restoreBy({ plan_hash })
      assert.equal(state, "error")
      assert.equal(error?.code, "svc.conflict")
      assert.include(error?.detail, "changed since the dry run")
      assert.equal((yield* readTree(project_folder(world)))["a.txt"], "spoilt")
      assert.notInclude(world.engine.calls, "restore")
      yield* assertNothingLeft(world)
    }),
  )
})

/** The backup expired and a job removed its snapshot. */
const forgotten = Effect.fnUntraced(function* (world: World) {
  yield* worker()
  yield* enrolledWith()
  yield* ran(backup_job_id)
  const [snapshot] = yield* snapshotsOf(world)
  const engine_snapshot_id = EngineSnapshotId.make(snapshot?.engine_snapshot_id ?? "")
  yield* send([address(Backup, backup_id, ExpireBackup.make({}))])
  const forget = [{ backup_id, engine_snapshot_id }]
  yield* send([queueTargetJob(jobId(9), "retention", target_id, project_id, forget)])
  yield* ran(jobId(9))
  assert.deepEqual(yield* snapshotsOf(world), [])
  return forget
})

const place = { backup_id, project_id, share_id, target_id }

describe("an undelete", () => {
  inWorld("recovers a backup with all its files, even after maintenance", (world) =>
    Effect.gen(function* () {
      yield* forgotten(world)
      yield* send([queueTargetJob(jobId(10), "maintenance", target_id, project_id)])
      yield* ran(jobId(10))
      yield* send(undeleteBackup(jobId(11), place, 10))
      assert.equal((yield* backupNow).state, "undeleting")
      assert.equal((yield* ran(jobId(11))).state, "available")
      const { state, kept } = yield* backupNow
      assert.deepEqual([state, kept], ["available", true])
      yield* writeTree(project_folder(world), { "a.txt": "spoilt" })
      assert.equal((yield* restoreBy({})).state, "available")
      assert.deepEqual(yield* readTree(project_folder(world)), share_tree)
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("leaves the backup expired if its snapshot is permanently gone", (world) =>
    Effect.gen(function* () {
      yield* forgotten(world)
      const memory = yield* openBucket(world.s3, world.bucket)
      memory.versions.clear()
      yield* send(undeleteBackup(jobId(11), place, 10))
      const { state, error } = yield* ran(jobId(11))
      assert.equal(state, "error")
      assert.equal(error?.code, "svc.conflict")
      assert.equal((yield* backupNow).state, "expired")
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("leaves the backup expired if the engine does not find the recovered snapshot", (world) =>
    Effect.gen(function* () {
      yield* forgotten(world)
      const memory = yield* openBucket(world.s3, world.bucket)
      // The bucket reports a recovered snapshot that the engine does not list.
      memory.deleted.delete(`snapshots/${(yield* backupNow).engine_snapshot_id}`)
      yield* send(undeleteBackup(jobId(11), place, 10))
      assert.equal((yield* ran(jobId(11))).error?.code, "svc.conflict")
      assert.equal((yield* backupNow).state, "expired")
    }),
  )

  inWorld("protects the backup from a retention job queued before", (world) =>
    Effect.gen(function* () {
      const forget = yield* forgotten(world)
      yield* send(undeleteBackup(jobId(11), place, 10))
      yield* ran(jobId(11))
      yield* send([queueTargetJob(jobId(12), "retention", target_id, project_id, forget)])
      assert.equal((yield* ran(jobId(12))).state, "available")
      assert.lengthOf(yield* snapshotsOf(world), 1)
    }),
  )
})

const scratch = () => {
  const { scratch_dir } = agentOptions
  return existsSync(scratch_dir) ? readdirSync(scratch_dir) : []
}

describe("a restore test", () => {
  inWorld("verifies a backup, and leaves no files on the machine", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      yield* send(testBackup(jobId(11), place))
      assert.equal((yield* ran(jobId(11))).state, "available")
      const event = Schema.decodeUnknownSync(BackupRestoreTested)(
        yield* last(`backup.${backup_id}`),
      )
      assert.equal(event.files, (yield* snapshotsOf(world))[0]?.files)
      assert.isAbove(event.bytes, 0)
      assert.equal((yield* backupNow).state, "available")
      assert.isEmpty(scratch())
      yield* assertNothingLeft(world)
    }),
  )

  inWorld("reports a backup with missing data, whose state is unchanged", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const memory = yield* openBucket(world.s3, world.bucket)
      for (const key of memory.objects.keys()) if (/^data/.test(key)) memory.objects.delete(key)
      yield* send(testBackup(jobId(11), place))
      assert.equal((yield* ran(jobId(11))).error?.code, "svc.engine_error")
      assert.deepInclude(yield* last(`backup.${backup_id}`), { type: "BackupRestoreTestFailed" })
      assert.equal((yield* backupNow).state, "available")
      assert.isEmpty(scratch())
    }),
  )

  inWorld("records no result if it could not test the backup", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const before = yield* last(`backup.${backup_id}`)
      world.engine.next.set("prove", { throws: new Error("A mistake of the adapter.") })
      yield* send(testBackup(jobId(11), place))
      assert.equal((yield* ran(jobId(11))).error?.code, "svc.internal_error")
      assert.deepEqual(yield* last(`backup.${backup_id}`), before)
      assert.isEmpty(scratch())
    }),
  )

  inWorld("runs concurrently with a backup to the same repository", (world) =>
    Effect.gen(function* () {
      yield* worker()
      yield* enrolledWith()
      yield* ran(backup_job_id)
      const came = yield* hold(world, "engine.prove")
      yield* send(testBackup(jobId(11), place))
      yield* give(jobId(11))
      yield* came
      const body = { ...place, backup_id: other_backup_id, job_id: jobId(12), policy_id: null }
      const wish = { crash_consistent_wanted: null, tick: null, max_retries: 0 }
      yield* send(requestBackup({ ...body, ...wish }, 10))
      assert.equal((yield* ran(jobId(12))).state, "available")
      assert.equal((yield* jobNow(jobId(11))).state, "transferring")
    }),
  )
})
