import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { v7 } from "uuid"
import { address } from "#actors/commands.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import {
  type SchedulingOptions,
  scheduling,
} from "#actors/share-protection/processes/scheduling.ts"
import {
  definePolicy,
  deletePolicy,
  startFormatUpgrade,
} from "#actors/share-protection/requests.ts"
import { Scheduler, scheduler_id } from "#actors/share-protection/scheduler.ts"
import { TargetTemplate } from "#actors/share-protection/target-template.ts"
import { ApplyDomain, ConfigureDomain } from "#schemas/share-protection/domain.ts"
import { BackupId, DomainId, PolicyId } from "#schemas/share-protection/id.ts"
import {
  type DefinePolicy,
  FinishShareBackup,
  UpdatePolicy,
} from "#schemas/share-protection/policy.ts"
import { PauseScheduler, ResumeScheduler } from "#schemas/share-protection/scheduler.ts"
import { CreateTargetTemplate } from "#schemas/share-protection/target-template.ts"
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
  backUp,
  ownJobId,
  shareId,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import {
  other_project_id,
  policy,
  project_id,
  template,
  template_id,
} from "../../world/share-protection/samples.ts"

const options: SchedulingOptions = {
  scheduler_interval_seconds: 60,
  schedule_jitter_seconds: 0,
  quotas: { targets: 10, policies: 10, backups: 1000 },
}

const schedulingWith = (more: Partial<SchedulingOptions> = {}) =>
  begin(scheduling({ ...options, ...more }))

/** A policy for the share with that number, defined now. */
const protect = Effect.fnUntraced(function* (
  number: number,
  more: Partial<typeof DefinePolicy.Type> = {},
) {
  const id = PolicyId.make(v7({ msecs: yield* Clock.currentTimeMillis }))
  const defined = { ...policy, id, target_id: targetId(1), schedule: "0 * * * *", ...more }
  yield* ask(...definePolicy(shareId(number), defined, 100))
  return defined
})

const change = (
  number: number,
  policy_id: PolicyId,
  more: Omit<Parameters<typeof UpdatePolicy.make>[0], "policy_id">,
) => ask(address(Policy, shareId(number), UpdatePolicy.make({ policy_id, ...more })))

/** The outcome of each tick of a share's policy: its time in hours after noon, and the result. */
const ticks = Effect.fnUntraced(function* (number: number) {
  const all = yield* happenings(`policy.${shareId(number)}`)
  return all.flatMap(({ event, seconds }) => {
    const { tick, reason } = event
    if (typeof tick !== "string") return []
    const hours = (Date.parse(tick) - noon) / 3_600_000
    return [{ hours, late: seconds - hours * 3600, how: reason ?? "taken" }]
  })
})

/** Ends the share's backup in progress. */
const finishBackup = Effect.fnUntraced(function* (number: number) {
  const all = yield* happenings(`policy.${shareId(number)}`)
  const started = all.findLast(({ event }) => event.type === "ShareBackupStarted")
  const backup_id = BackupId.make(String(started?.event.backup_id))
  yield* ask(address(Policy, shareId(number), FinishShareBackup.make({ backup_id })))
})

describe("a schedule", () => {
  conducted(
    "requests each backup of a week once",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1, { schedule: "30 2 * * *" })
      yield* schedulingWith()
      for (let day = 0; day < 7; day++) {
        yield* pass("24 hours")
        yield* finishBackup(1)
      }
      const taken = [14.5, 38.5, 62.5, 86.5, 110.5, 134.5, 158.5]
      assert.deepEqual(
        yield* ticks(1),
        taken.map((hours) => ({ hours, late: 0, how: "taken" })),
      )
      const requested = yield* happenings("backup")
      assert.lengthOf(requested, 7)
      assert.lengthOf(yield* happenings("job"), 7)
      assert.lengthOf(new Set(requested.map(({ id }) => id)), 7)
      assert.isTrue(requested.every(({ event }) => event.policy_id !== null))
    }),
  )

  conducted(
    "is checked in every interval",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1, { schedule: "7 * * * *" })
      yield* schedulingWith({ scheduler_interval_seconds: 600 })
      yield* pass("30 minutes")
      assert.deepEqual(yield* ticks(1), [{ hours: 7 / 60, late: 180, how: "taken" }])
    }),
  )

  conducted(
    "uses the policy's own time zone",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1, { schedule: "0 2 * * *", timezone: "America/New_York" })
      yield* schedulingWith()
      yield* pass("24 hours")
      assert.deepEqual(yield* ticks(1), [{ hours: 19, late: 0, how: "taken" }])
    }),
  )

  conducted(
    "is delayed by a jitter that is constant for each policy",
    Effect.gen(function* () {
      yield* availableTarget(1)
      for (const number of [1, 2, 3]) yield* protect(number, { schedule: "0 0 * * *" })
      yield* schedulingWith({ schedule_jitter_seconds: 3600, scheduler_interval_seconds: 1 })
      for (let day = 0; day < 2; day++) {
        yield* pass("24 hours")
        for (const number of [1, 2, 3]) yield* finishBackup(number)
      }
      const lates = yield* Effect.forEach([1, 2, 3], (number) =>
        Effect.map(ticks(number), (all) => all.map(({ late }) => late)),
      )
      for (const [first = -1, second] of lates) {
        assert.equal(first, second)
        assert.isAtLeast(first, 0)
        assert.isBelow(first, 3601)
      }
      assert.lengthOf(new Set(lates.map(([first]) => first)), 3)
    }),
  )

  conducted(
    "does not run while its policy is disabled, nor catch up afterwards",
    Effect.gen(function* () {
      yield* availableTarget(1)
      const { id } = yield* protect(1)
      yield* schedulingWith()
      yield* pass("30 minutes")
      yield* change(1, id, { enabled: false })
      yield* pass("5 hours")
      yield* change(1, id, { enabled: true })
      yield* pass("29 minutes")
      assert.deepEqual(yield* ticks(1), [])
      yield* pass("1 minutes")
      assert.deepEqual(yield* ticks(1), [{ hours: 6, late: 0, how: "taken" }])
    }),
  )

  conducted(
    "restarts when it changes, and continues when other fields change",
    Effect.gen(function* () {
      yield* availableTarget(1)
      const { id } = yield* protect(1)
      const running = yield* schedulingWith({ schedule_jitter_seconds: 3600 })
      yield* pass("60 minutes")
      // With the largest jitter, some ticks still wait: a due tick stays due after a rename.
      yield* change(1, id, { name: "Renamed" })
      yield* pass("60 minutes")
      assert.deepEqual(
        (yield* ticks(1)).map(({ hours }) => hours),
        [1],
      )
      yield* Fiber.interrupt(running)
      yield* finishBackup(1)
      yield* change(1, id, { schedule: "0 0 * * *" })
      yield* schedulingWith()
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* ticks(1)).map(({ hours }) => hours),
        [1],
      )
    }),
  )

  conducted(
    "ends with its policy",
    Effect.gen(function* () {
      yield* availableTarget(1)
      const defined = yield* protect(1)
      yield* schedulingWith()
      yield* ask(...deletePolicy(shareId(1), defined))
      yield* pass("3 hours")
      assert.deepEqual(yield* ticks(1), [])
    }),
  )
})

describe("a scheduler that was offline", () => {
  conducted(
    "uses only the last of the missed ticks",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1)
      yield* pass("5.5 hours")
      yield* schedulingWith()
      assert.deepEqual(yield* ticks(1), [{ hours: 5, late: 1800, how: "taken" }])
      yield* finishBackup(1)
      yield* pass("30 minutes")
      assert.deepEqual(
        (yield* ticks(1)).map(({ hours }) => hours),
        [5, 6],
      )
    }),
  )

  conducted(
    "uses each tick once despite restarts around its time",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1, { schedule: "*/5 * * * *" })
      for (let i = 0; i < 40; i++) {
        const running = yield* Effect.forkScoped(Effect.scoped(schedulingWith()))
        for (let step = 0; step < i; step++) yield* Effect.yieldNow
        yield* pass("30 seconds")
        yield* Fiber.interrupt(running)
        if ((yield* ticks(1)).length > 0) yield* finishBackup(1)
      }
      yield* schedulingWith()
      const hours = (yield* ticks(1)).map(({ hours }) => Math.round(hours * 12))
      assert.deepEqual(hours, [1, 2, 3, 4])
      assert.lengthOf(yield* happenings("backup"), 4)
    }),
  )
})

describe("a scheduler that is paused", () => {
  conducted(
    "uses no ticks, and none of the missed ones after it resumes",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1)
      yield* schedulingWith()
      yield* ask(address(Scheduler, scheduler_id, PauseScheduler.make({})))
      yield* pass("3.5 hours")
      assert.deepEqual(yield* ticks(1), [])
      const at = instant(3.5 * 3600)
      yield* ask(address(Scheduler, scheduler_id, ResumeScheduler.make({ at })))
      yield* pass("29 minutes")
      assert.deepEqual(yield* ticks(1), [])
      yield* pass("1 minutes")
      assert.deepEqual(yield* ticks(1), [{ hours: 4, late: 0, how: "taken" }])
    }),
  )

  conducted(
    "stays paused across a restart",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1)
      yield* ask(address(Scheduler, scheduler_id, PauseScheduler.make({})))
      yield* pass("90 minutes")
      yield* schedulingWith()
      yield* pass("90 minutes")
      assert.deepEqual(yield* ticks(1), [])
    }),
  )
})

describe("a tick that cannot be used", () => {
  conducted(
    "is skipped by an event while another backup of the share is under way",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1)
      yield* schedulingWith()
      yield* backUp(1, 1)
      yield* pass("1 hour")
      assert.deepEqual(yield* ticks(1), [{ hours: 1, late: 0, how: "backup_in_flight" }])
      yield* finishBackup(1)
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* ticks(1)).map(({ how }) => how),
        ["backup_in_flight", "taken"],
      )
    }),
  )

  conducted(
    "is skipped by an event when the project's quota is used up",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1)
      yield* schedulingWith({ quotas: { ...options.quotas, backups: 1 } })
      yield* backUp(2, 1)
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* ticks(1)).map(({ how }) => how),
        ["quota_exceeded"],
      )
      assert.lengthOf(yield* happenings("backup"), 1)
    }),
  )

  conducted(
    "counts against the applied quota of its target's domain",
    Effect.gen(function* () {
      const domain_id = DomainId.make("domain-1")
      yield* availableTarget(1, { domain_id })
      yield* protect(1)
      yield* schedulingWith({ quotas: { ...options.quotas, backups: 0 } })
      yield* ask(address(Domain, domain_id, ConfigureDomain.make({ quotas: { backups: 1 } })))
      yield* pass("1 hour")
      yield* ask(address(Domain, domain_id, ApplyDomain.make({})))
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* ticks(1)).map(({ how }) => how),
        ["quota_exceeded", "taken"],
      )
    }),
  )

  conducted(
    "is skipped by an event while its target's format is upgraded",
    Effect.gen(function* () {
      yield* availableTarget(1)
      yield* protect(1)
      yield* schedulingWith()
      yield* ask(...startFormatUpgrade(targetId(1), project_id, ownJobId(1)))
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* ticks(1)).map(({ how }) => how),
        ["repository_locked"],
      )
    }),
  )

  conducted(
    "goes to the bucket of its project below a template, else to the shared one, else nowhere",
    Effect.gen(function* () {
      yield* ask(address(TargetTemplate, template_id, CreateTargetTemplate.make(template)))
      yield* protect(1, { target_id: null, target_template_id: template_id })
      yield* schedulingWith()
      yield* availableTarget(3, { template_id, project_id: other_project_id })
      yield* pass("1 hour")
      yield* availableTarget(1, { template_id, project_id: null })
      yield* pass("1 hour")
      yield* finishBackup(1)
      yield* availableTarget(2, { template_id })
      yield* pass("1 hour")
      assert.deepEqual(
        (yield* ticks(1)).map(({ how }) => how),
        ["target_unavailable", "taken", "taken"],
      )
      const targets = (yield* happenings("backup")).map(({ event }) => event.target_id)
      assert.deepEqual(targets, [targetId(1), targetId(2)])
    }),
  )
})
