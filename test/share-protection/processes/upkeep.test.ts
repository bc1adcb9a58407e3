import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { cancelJob } from "#actors/share-protection/jobs/transitions.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { upkeep } from "#actors/share-protection/processes/upkeep.ts"
import {
  definePolicy,
  deleteBackup,
  deletePolicy,
  queueTargetJob,
} from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import {
  FinishBackupRestore,
  type Forgotten,
  StartBackupRestore,
} from "#schemas/share-protection/backup.ts"
import { JobId } from "#schemas/share-protection/id.ts"
import { type DefinePolicy, UpdatePolicy } from "#schemas/share-protection/policy.ts"
import { RecordTargetUsage } from "#schemas/share-protection/target.ts"
import {
  ask,
  begin,
  conducted,
  happenings,
  instant,
  pass,
  secondsOf,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  backupId,
  finish,
  give,
  madeBackup,
  pendingTarget,
  restoreId,
  shareId,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf, registerWorkers } from "../../world/share-protection/deployment.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import {
  jobId,
  other_policy_id,
  policy,
  policy_id,
  project_id,
  usage_stats,
} from "../../world/share-protection/samples.ts"

const hour_s = 3600

const every_hour = { maintenance_interval_seconds: hour_s, restore_test_interval_seconds: 0 }
const upkeeping = begin(upkeep(every_hour))

const define = (more: Partial<typeof DefinePolicy.Type> = {}) =>
  ask(...definePolicy(shareId(1), { ...policy, target_id: targetId(1), ...more }, 100))

/**
 * A backup of the first share, by default of its policy, made the given number of hours after noon.
 */
const made = (number: number, hours: number, more: Parameters<typeof madeBackup>[2] = {}) =>
  madeBackup(number, 1, {
    ...{ share_id: shareId(1), policy_id, taken_at: instant(hours * 3600) },
    ...more,
  })

/** Numbers of the backups that have expired, in order. */
const expired = Effect.map(happenings("backup"), (all) =>
  all.flatMap(({ id, event }) =>
    event.type === "BackupExpired" ? Number(id.slice(-12)) - 4000 : [],
  ),
)

/** The queued jobs of a type, each with the snapshots to remove. */
const jobsOf = Effect.fnUntraced(function* (job_type: string) {
  return (yield* happenings("job")).flatMap(({ id, event, seconds }) => {
    if (event.type !== "JobQueued" || event.job_type !== job_type) return []
    // `JobQueued` events have this field.
    const forget = event.forget as ReadonlyArray<Forgotten>
    return [{ id: JobId.make(id), seconds, forget }]
  })
})

describe("retention", () => {
  conducted(
    "expires backups that the policy does not keep, and forgets their snapshots",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 2 } })
      yield* upkeeping
      yield* made(1, 1)
      yield* made(2, 2)
      assert.deepEqual(yield* expired, [])
      yield* made(3, 3)
      assert.deepEqual(yield* expired, [1])
      yield* made(4, 4)
      assert.deepEqual(yield* expired, [1, 2])
      const forgotten = (yield* jobsOf("retention")).map(({ forget }) => forget)
      assert.deepEqual(forgotten, [
        [{ backup_id: backupId(1), engine_snapshot_id: "snapshot-1" }],
        [{ backup_id: backupId(2), engine_snapshot_id: "snapshot-2" }],
      ])
      const released = (yield* types("ledger")).filter((type) => type === "Released")
      assert.lengthOf(released, 2)
      assert.lengthOf(yield* secondsOf("target", "TargetBackupsDeregistered"), 2)
    }),
  )

  conducted(
    "uses the days of the policy's time zone",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_daily: 3 }, timezone: "Pacific/Auckland" })
      yield* upkeeping
      // In this time zone midnight is at 11:00 UTC, 23 hours after noon.
      yield* made(1, 21)
      yield* made(2, 22)
      yield* made(3, 23)
      yield* made(4, 24)
      yield* made(5, 48)
      assert.deepEqual(yield* expired, [3, 1])
    }),
  )

  conducted(
    "ignores backups of another policy, or without a policy",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 1 } })
      yield* upkeeping
      yield* made(1, 1, { policy_id: null })
      yield* made(2, 2)
      yield* madeBackup(3, 1, { taken_at: instant(3) })
      assert.deepEqual(yield* expired, [])
      const defined = { ...policy, target_id: targetId(1) }
      yield* ask(...deletePolicy(shareId(1), defined))
      yield* define({ id: other_policy_id, retention: { keep_last: 1 } })
      yield* made(4, 4, { policy_id: other_policy_id })
      assert.deepEqual(yield* expired, [])
    }),
  )

  conducted(
    "keeps a backup until its restore has ended",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 1 } })
      yield* upkeeping
      yield* made(1, 1)
      const restore_id = restoreId(1)
      yield* ask(address(Backup, backupId(1), StartBackupRestore.make({ restore_id })))
      yield* made(2, 2)
      assert.deepEqual(yield* expired, [])
      yield* ask(address(Backup, backupId(1), FinishBackupRestore.make({ restore_id })))
      assert.deepEqual(yield* expired, [1])
    }),
  )

  conducted(
    "follows a changed policy, and expires nothing when the policy is deleted",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 9 } })
      const running = yield* upkeeping
      for (const number of [1, 2, 3, 4]) yield* made(number, number)
      const retention = { keep_last: 3 }
      yield* ask(address(Policy, shareId(1), UpdatePolicy.make({ policy_id, retention })))
      assert.deepEqual(yield* expired, [1])
      yield* Fiber.interrupt(running)
      const fewer = UpdatePolicy.make({ policy_id, retention: { keep_last: 1 } })
      yield* ask(address(Policy, shareId(1), fewer))
      yield* ask(...deletePolicy(shareId(1), { ...policy, target_id: targetId(1) }))
      yield* upkeeping
      assert.deepEqual(yield* expired, [1])
    }),
  )

  conducted(
    "cancels pending expirations if the policy is deleted meanwhile",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 1 } })
      yield* upkeeping
      yield* made(1, 1)
      const restore_id = restoreId(1)
      yield* ask(address(Backup, backupId(1), StartBackupRestore.make({ restore_id })))
      yield* made(2, 2)
      yield* ask(...deletePolicy(shareId(1), { ...policy, target_id: targetId(1) }))
      yield* ask(address(Backup, backupId(1), FinishBackupRestore.make({ restore_id })))
      assert.deepEqual(yield* expired, [])
    }),
  )

  conducted(
    "expires many backups in batches of the maximum per job",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 200 } })
      for (let number = 1; number <= 131; number++) yield* made(number, number)
      const retention = { keep_last: 1 }
      yield* ask(address(Policy, shareId(1), UpdatePolicy.make({ policy_id, retention })))
      yield* upkeeping
      assert.lengthOf(yield* expired, 130)
      const sizes = (yield* jobsOf("retention")).map(({ forget }) => forget.length)
      assert.deepEqual(
        sizes.toSorted((one, other) => other - one),
        [64, 64, 2],
      )
    }),
  )

  conducted(
    "separates the repositories of targets",
    Effect.gen(function* () {
      for (const number of [1, 2]) yield* availableTarget(number)
      yield* define({ retention: { keep_last: 1 } })
      yield* made(1, 1)
      yield* made(2, 2, { target_id: targetId(2) })
      yield* made(3, 3)
      yield* upkeeping
      assert.sameMembers([...(yield* expired)], [1, 2])
      const forgotten = (yield* jobsOf("retention")).map(({ forget }) => forget.length)
      assert.deepEqual(forgotten, [1, 1])
    }),
  )

  conducted(
    "expires each backup once despite restarts of the conductor",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 1 } })
      for (const number of [1, 2, 3]) yield* made(number, number)
      for (let turns = 0; turns < 40; turns++) {
        const running = yield* Effect.forkScoped(Effect.scoped(upkeeping))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(running)
      }
      yield* upkeeping
      assert.sameMembers([...(yield* expired)], [1, 2])
      assert.lengthOf(yield* jobsOf("retention"), 1)
    }),
  )

  conducted(
    "ignores backups that a tenant deleted",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define({ retention: { keep_last: 1 } })
      yield* upkeeping
      yield* made(1, 1)
      const place = { project_id, target_id: targetId(1) }
      yield* ask(...deleteBackup(backupId(1), place, { expired: false }, instant(0)))
      yield* made(2, 2)
      assert.deepEqual(yield* expired, [])
    }),
  )
})

/** Enrolls the first target through its own job, now. */
const enroll = Effect.gen(function* () {
  yield* registerWorkers(worker_id)
  yield* pendingTarget(1, { job_id: jobId(1) })
  yield* ask(queueTargetJob(jobId(1), "target_enroll", targetId(1), project_id))
  yield* give(jobId(1), worker_id, 1)
  yield* finish(jobId(1))
})

/** Times at which maintenance jobs were queued, in hours after noon. */
const hoursOf = Effect.map(jobsOf("maintenance"), (jobs) =>
  jobs.map(({ seconds }) => seconds / hour_s),
)

describe("maintenance", () => {
  conducted(
    "runs an interval after the enrollment, and then after the end of the last one",
    Effect.gen(function* () {
      yield* pass("30 minutes")
      yield* enroll
      yield* upkeeping
      yield* pass("59 minutes")
      assert.deepEqual(yield* hoursOf, [])
      yield* pass("5 hours")
      // The first job still waits, so no second one is queued.
      assert.deepEqual(yield* hoursOf, [1.5])
      const [first] = yield* jobsOf("maintenance")
      assert.isDefined(first)
      yield* give(first.id, worker_id, 2)
      yield* finish(first.id)
      yield* pass("59 minutes")
      assert.lengthOf(yield* hoursOf, 1)
      yield* pass("1 minutes")
      assert.lengthOf(yield* hoursOf, 2)
    }),
  )

  conducted(
    "keeps its schedule across restarts and changes of the target",
    Effect.gen(function* () {
      yield* enroll
      for (let quarter = 0; quarter < 7; quarter++) {
        const running = yield* upkeeping
        yield* pass("15 minutes")
        yield* ask(address(Target, targetId(1), RecordTargetUsage.make({ usage_stats })))
        yield* Fiber.interrupt(running)
      }
      assert.deepEqual(yield* hoursOf, [1])
    }),
  )

  conducted(
    "runs again an interval after a failure",
    Effect.gen(function* () {
      yield* enroll
      yield* upkeeping
      yield* pass("1 hour")
      const [first] = yield* jobsOf("maintenance")
      assert.isDefined(first)
      yield* ask(...cancelJob(yield* factsOf(first.id)))
      yield* pass("1 hour")
      assert.deepEqual(yield* hoursOf, [1, 2])
    }),
  )
})
