/** The schedule of automatic restore tests, which never block other jobs. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { type JobFailure, rejectJob } from "#actors/share-protection/jobs/transitions.ts"
import { jitterOf } from "#actors/share-protection/processes/schedule.ts"
import { upkeep } from "#actors/share-protection/processes/upkeep.ts"
import { definePolicy } from "#actors/share-protection/requests.ts"
import { CompleteBackupUndelete, StartBackupUndelete } from "#schemas/share-protection/backup.ts"
import { JobId, PolicyId } from "#schemas/share-protection/id.ts"
import type { DefinePolicy } from "#schemas/share-protection/policy.ts"
import {
  ask,
  begin,
  conducted,
  happenings,
  instant,
  noon,
  pass,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  backupId,
  madeBackup,
  shareId,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf } from "../../world/share-protection/deployment.ts"
import { policy, policy_id, uuid } from "../../world/share-protection/samples.ts"

const interval_s = 3600
const never_s = 31_536_000

const testing = (restore_test_interval_seconds = interval_s) =>
  begin(upkeep({ maintenance_interval_seconds: never_s, restore_test_interval_seconds }))

const define = (number: number, more: Partial<typeof DefinePolicy.Type> = {}) => {
  const own = { id: PolicyId.make(uuid(8000 + number)), target_id: targetId(1) }
  const all = { retention: { keep_last: 9 }, ...own, ...more }
  return ask(...definePolicy(shareId(number), { ...policy, ...all }, 100))
}

/** A backup of that share's policy, made the given number of hours after noon. */
const made = (number: number, of: number, hours = 0) =>
  madeBackup(number, 1, {
    share_id: shareId(of),
    policy_id: PolicyId.make(uuid(8000 + of)),
    taken_at: instant(hours * 3600),
  })

/** The time at which each test was queued, in seconds after noon, and the number of its backup. */
const tests = Effect.map(happenings("job"), (all) =>
  all.flatMap(({ seconds, id, event }) =>
    event.type === "JobQueued" && event.job_type === "restore_test"
      ? [{ seconds, job_id: JobId.make(id), of: Number(String(event.backup_id).slice(-12)) - 4000 }]
      : [],
  ),
)

const failure: JobFailure = {
  code: "svc.worker_unavailable",
  detail: "No.",
  category: "operator_action_required",
  wrote_nothing: true,
}

const end = (job_id: JobId) =>
  Effect.flatMap(factsOf(job_id), (facts) => ask(...rejectJob(facts, failure)))

describe("restore tests", () => {
  conducted(
    "test the newest backup of a protected share once per turn",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define(1)
      yield* made(1, 1, -2)
      yield* made(2, 1, -1)
      const running = yield* testing()
      const [first] = yield* tests
      assert.equal(first?.of, 2)
      assert.lengthOf(yield* tests, 1)
      if (first !== undefined) yield* end(first.job_id)
      yield* made(3, 1)
      yield* pass("1 hour")
      const [, second] = yield* tests
      const turn_ms = jitterOf(shareId(1), interval_s)
      const wanted = (noon + turn_ms - (noon % (interval_s * 1000))) % (interval_s * 1000)
      assert.equal((noon + (second?.seconds ?? 0) * 1000) % (interval_s * 1000), wanted)
      assert.equal(second?.of, 3)
      // A new conductor knows which turn was already taken.
      yield* Fiber.interrupt(running)
      yield* testing()
      assert.lengthOf(yield* tests, 2)
    }),
  )

  conducted(
    "are few at a time: the next one starts when one has ended",
    Effect.gen(function* () {
      yield* availableTarget(1)
      for (const number of [1, 2, 3]) {
        yield* define(number)
        yield* made(number, number, -1)
      }
      yield* testing()
      assert.deepEqual(
        (yield* tests).map(({ of }) => of),
        [1, 2],
      )
      const [first] = yield* tests
      if (first !== undefined) yield* end(first.job_id)
      assert.deepEqual(
        (yield* tests).map(({ of }) => of),
        [1, 2, 3],
      )
    }),
  )

  conducted(
    "do not run for a disabled policy, a share without a backup, or an interval of 0",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* define(1, { enabled: false })
      yield* made(1, 1)
      yield* define(2)
      yield* testing()
      yield* testing(0)
      yield* pass("3 hours")
      assert.deepEqual(yield* tests, [])
      yield* made(2, 2)
      assert.lengthOf(yield* tests, 1)
    }),
  )
})

describe("an undeleted backup", () => {
  conducted(
    "is kept by retention, and counts for no rule",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* ask(
        ...definePolicy(
          shareId(1),
          { ...policy, target_id: targetId(1), retention: { keep_last: 1 } },
          100,
        ),
      )
      const of = { share_id: shareId(1), policy_id }
      yield* madeBackup(1, 1, { ...of, taken_at: instant(0) })
      yield* madeBackup(2, 1, { ...of, taken_at: instant(3600) })
      yield* testing(0)
      const expired = Effect.map(happenings("backup"), (all) =>
        all.flatMap(({ id, event }) => (event.type === "BackupExpired" ? [id] : [])),
      )
      assert.deepEqual(yield* expired, [backupId(1)])
      yield* ask(address(Backup, backupId(1), StartBackupUndelete.make({})))
      const back = CompleteBackupUndelete.make({ protected_until: null })
      yield* ask(address(Backup, backupId(1), back))
      yield* madeBackup(3, 1, { ...of, taken_at: instant(7200) })
      assert.deepEqual(yield* expired, [backupId(1), backupId(2)])
    }),
  )
})
