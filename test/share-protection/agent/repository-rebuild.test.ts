/** Compares records with repositories, using the in-memory engine. */
import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { address } from "#actors/commands.ts"
import { Backup, backupAfter } from "#actors/share-protection/backup.ts"
import { rejectJob } from "#actors/share-protection/jobs/transitions.ts"
import { repositoryRebuild } from "#actors/share-protection/processes/repository-rebuild.ts"
import { queueTargetJob, requestBackup } from "#actors/share-protection/requests.ts"
import { backupTag, tagsOf } from "#actors/share-protection/snapshot-tag.ts"
import { Log } from "#events/log.ts"
import { EngineSnapshotId, ExpireBackup } from "#schemas/share-protection/backup.ts"
import { JobId } from "#schemas/share-protection/id.ts"
import {
  enrolledWith,
  happened,
  inWorld,
  ran,
  snapshotsOf,
  type World,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  backupNow,
  factsOf,
  jobNow,
  send,
  targetNow,
} from "../../world/share-protection/deployment.ts"
import { openBucket, putObject, removeObject } from "../../world/share-protection/memory/buckets.ts"
import {
  backup_id,
  jobId,
  other_backup_id,
  other_project_id,
  project_id,
  share_id,
  snapshot,
  target_id,
} from "../../world/share-protection/samples.ts"

/** Runs the loop once and returns the kinds and subjects of its findings. */
const run = Effect.gen(function* () {
  const loop = yield* repositoryRebuild
  return (yield* loop).map(({ kind, subject }) => [kind, subject] as const)
})

const head = Effect.flatMap(Log, (log) => log.head(""))

/** A repository with one backup. */
const backedUp = Effect.gen(function* () {
  yield* worker()
  yield* enrolledWith()
  yield* ran(backup_job_id)
})

/** Adds a snapshot to the repository. */
const put = Effect.fnUntraced(function* (
  world: World,
  engine_snapshot_id: string,
  tags: ReadonlyArray<string>,
) {
  const memory = yield* openBucket(world.s3, world.bucket)
  const { taken_at, bytes, stored_bytes, files } = snapshot
  const stored = { tags, host: share_id, taken_at, bytes, stored_bytes, files, entries: [] }
  const text = new TextEncoder().encode(JSON.stringify(stored))
  yield* putObject(memory, `snapshots/${engine_snapshot_id}`, text)
})

const tags = (id: typeof backup_id) =>
  tagsOf({ backup_id: id, project_id, share_id, policy_id: null, crash_consistent: true })

const otherNow = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(`share-protection.backup.${other_backup_id}`)
  assert.isDefined(last)
  return yield* backupAfter(log, last)
})

/** The most recently queued job. */
const newestJob = Effect.gen(function* () {
  const all = yield* Stream.runCollect((yield* Log).read("share-protection.job"))
  const born = all.filter(({ commit }) => commit.events.some(({ type }) => type === "JobQueued"))
  return JobId.make(born.at(-1)?.stream.split(".")[2] ?? "")
})

describe("a rebuild from the repositories", () => {
  inWorld("finds no drift if records and snapshots agree", () =>
    Effect.gen(function* () {
      yield* backedUp
      const before = yield* head
      assert.deepEqual(yield* run, [])
      assert.equal(yield* head, before)
    }),
  )

  inWorld("adopts a snapshot without a record by its tags, once", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const engine_snapshot_id = "a".repeat(64)
      yield* put(world, engine_snapshot_id, tags(other_backup_id))
      yield* put(world, "b".repeat(64), ["of=others"])
      assert.deepEqual(yield* run, [["snapshot_unknown", other_backup_id]])
      const { taken_at } = snapshot
      assert.deepInclude(yield* otherNow, {
        state: "available",
        engine_snapshot_id,
        taken_at,
        project_id,
        share_id,
        target_id,
        job_id: null,
        policy_id: null,
        protected_until: null,
      })
      assert.equal((yield* targetNow).backups, 2)
      const before = yield* head
      assert.deepEqual(yield* run, [])
      assert.equal(yield* head, before)
    }),
  )

  inWorld("adopts no snapshot of a project that does not own the bucket", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const before = yield* head
      const foreign = tags(other_backup_id).with(1, "project=another")
      yield* put(world, "a".repeat(64), foreign)
      assert.deepEqual(yield* run, [])
      assert.equal(yield* head, before)
    }),
  )

  inWorld("queues no job for a project that does not own the bucket", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const body = {
        ...{ backup_id: other_backup_id, job_id: jobId(9), project_id: other_project_id, share_id },
        ...{ target_id, policy_id: null, crash_consistent_wanted: null, tick: null },
        max_retries: 0,
      }
      yield* send(requestBackup(body, 10))
      yield* send(
        rejectJob(yield* factsOf(jobId(9)), {
          ...{ code: "svc.engine_error", detail: "It was killed.", wrote_nothing: false },
          category: "operator_action_required",
        }),
      )
      const before = yield* head
      yield* put(world, "a".repeat(64), tags(other_backup_id))
      assert.deepEqual(yield* run, [])
      assert.equal(yield* head, before)
    }),
  )

  inWorld("marks an available backup without a snapshot as lost, once", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const memory = yield* openBucket(world.s3, world.bucket)
      removeObject(memory, `snapshots/${(yield* backupNow).engine_snapshot_id}`)
      assert.deepEqual(yield* run, [["snapshot_lost", backup_id]])
      assert.equal((yield* backupNow).state, "error")
      assert.deepEqual(yield* run, [])
    }),
  )

  inWorld("only reports a lost snapshot that reappears", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const memory = yield* openBucket(world.s3, world.bucket)
      const key = `snapshots/${(yield* backupNow).engine_snapshot_id}`
      const object = memory.objects.get(key)
      assert(object !== undefined)
      memory.objects.delete(key)
      yield* run
      memory.objects.set(key, object)
      const before = yield* head
      assert.deepEqual(yield* run, [["snapshot_leftover", backup_id]])
      assert.equal(yield* head, before)
    }),
  )

  inWorld("forgets the leftover snapshot of an expired backup with one job", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const { engine_snapshot_id } = yield* backupNow
      yield* send([address(Backup, backup_id, ExpireBackup.make({}))])
      const leftover = [["snapshot_leftover", backup_id] as const]
      assert.deepEqual(yield* run, leftover)
      const after = yield* head
      assert.deepEqual(yield* run, leftover)
      assert.equal(yield* head, after)
      const job_id = yield* newestJob
      assert.deepInclude(yield* jobNow(job_id), {
        job_type: "retention",
        state: "queued",
        target_id,
        forget: [
          { backup_id, engine_snapshot_id: EngineSnapshotId.make(engine_snapshot_id ?? "") },
        ],
      })
      assert.equal((yield* ran(job_id)).state, "available")
      assert.deepEqual(yield* snapshotsOf(world), [])
      assert.deepEqual(yield* run, [])
    }),
  )

  inWorld("ignores snapshots that an open job will forget", () =>
    Effect.gen(function* () {
      yield* backedUp
      const { engine_snapshot_id } = yield* backupNow
      assert(engine_snapshot_id !== null)
      yield* send([
        address(Backup, backup_id, ExpireBackup.make({})),
        queueTargetJob(jobId(9), "retention", target_id, project_id, [
          { backup_id, engine_snapshot_id },
        ]),
      ])
      const before = yield* head
      assert.deepEqual(yield* run, [["snapshot_leftover", backup_id]])
      assert.equal(yield* head, before)
    }),
  )

  inWorld("forgets the snapshot of a failed backup, but not that of a running one", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const body = {
        backup_id: other_backup_id,
        job_id: jobId(9),
        project_id,
        share_id,
        target_id,
        policy_id: null,
        crash_consistent_wanted: null,
        tick: null,
        max_retries: 0,
      }
      yield* send(requestBackup(body, 10))
      yield* put(world, "a".repeat(64), tags(other_backup_id))
      assert.deepEqual(yield* run, [])
      yield* send(
        rejectJob(yield* factsOf(jobId(9)), {
          code: "svc.engine_error",
          detail: "It was killed.",
          wrote_nothing: false,
          category: "operator_action_required",
        }),
      )
      assert.deepEqual(yield* run, [["snapshot_leftover", other_backup_id]])
      assert.equal((yield* ran(yield* newestJob)).state, "available")
      assert.deepEqual(
        (yield* snapshotsOf(world)).map((one) => one.tags.includes(backupTag(backup_id))),
        [true],
      )
    }),
  )

  inWorld("only reports a repository that it cannot read", (world) =>
    Effect.gen(function* () {
      yield* backedUp
      const memory = yield* openBucket(world.s3, world.bucket)
      removeObject(memory, `snapshots/${(yield* backupNow).engine_snapshot_id}`)
      memory.is_reachable = false
      const before = yield* head
      assert.deepEqual(yield* run, [["repository_unreadable", target_id]])
      assert.equal(yield* head, before)
      assert.equal((yield* backupNow).state, "available")
    }),
  )

  inWorld("ignores targets that are not enrolled", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* run, [])
      assert.deepEqual(yield* happened("target", target_id), ["TargetCreated"])
    }),
  )
})
