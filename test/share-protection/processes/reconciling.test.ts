import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { address } from "#actors/commands.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { cancelJob } from "#actors/share-protection/jobs/transitions.ts"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { orphanSweep } from "#actors/share-protection/processes/orphan-sweep.ts"
import {
  type Loop,
  type ReconcilingOptions,
  reconciling,
} from "#actors/share-protection/processes/reconciling.ts"
import { sharePolling } from "#actors/share-protection/processes/share-polling.ts"
import { Reconciliation } from "#actors/share-protection/reconciliation.ts"
import { definePolicy } from "#actors/share-protection/requests.ts"
import { LogUnavailable } from "#events/log.ts"
import { ConfigureDomain } from "#schemas/share-protection/domain.ts"
import { TriggerReconciliation } from "#schemas/share-protection/reconciliation.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import {
  ask,
  begin,
  conducted,
  happenings,
  pass,
  ready,
  secondsOf,
  settled,
  types,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  backUp,
  give,
  pendingTarget,
  shareId,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf } from "../../world/share-protection/deployment.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import { jobId, policy } from "../../world/share-protection/samples.ts"
import { shareOf } from "../../world/share-protection/simulation/engine.ts"

const found = (subject: string) => ({ kind: "share_gone", subject, detail: "It is gone." })

const reconcilingWith = (more: Partial<ReconcilingOptions> = {}) =>
  begin(reconciling({ reconciliation_interval_seconds: () => 300, loops: {}, ...more }))

const trigger = ask(address(Reconciliation, "main", TriggerReconciliation.make({})))
const configure = (min_workers: number) =>
  ask(address(Domain, "domain-1", ConfigureDomain.make({ min_workers })))

/** The drift of each finished run. */
const findings = Effect.map(happenings("reconciliation"), (all) =>
  all.flatMap(({ event }) =>
    event.type === "ReconciliationFinished"
      ? [{ drift: event.drift, drift_count: event.drift_count }]
      : [],
  ),
)

const runsAt = secondsOf("reconciliation", "ReconciliationStarted")

describe("reconciling", () => {
  conducted(
    "runs once per interval, and keeps its schedule across restarts",
    Effect.gen(function* () {
      const running = yield* reconcilingWith()
      yield* pass("15 minutes")
      assert.deepEqual(yield* runsAt, [300, 600, 900])
      yield* Fiber.interrupt(running)
      yield* pass("4 minutes")
      yield* reconcilingWith()
      yield* pass("1 minutes")
      assert.deepEqual(yield* runsAt, [300, 600, 900, 1200])
      yield* pass("1 minutes")
      assert.deepEqual((yield* types("reconciliation")).at(-1), "ReconciliationFinished")
    }),
  )

  conducted(
    "runs at once when an operator triggers it, and then after an interval",
    Effect.gen(function* () {
      yield* reconcilingWith()
      yield* pass("1 minutes")
      yield* trigger
      yield* pass("299 seconds")
      assert.deepEqual(yield* runsAt, [60])
      yield* pass("1 seconds")
      assert.deepEqual(yield* runsAt, [60, 360])
    }),
  )

  conducted(
    "follows a reloaded interval",
    Effect.gen(function* () {
      let interval = 300
      yield* reconcilingWith({ reconciliation_interval_seconds: () => interval })
      yield* pass("5 minutes")
      interval = 30
      yield* pass("2 minutes")
      assert.deepEqual((yield* runsAt).slice(0, 3), [300, 360, 390])
      interval = 3600
      yield* pass("30 minutes")
      assert.isAtMost((yield* runsAt).length, 5)
    }),
  )

  conducted(
    "runs its loops in sequence, and records their drift",
    Effect.gen(function* () {
      const order: Array<string> = []
      const loop = (name: string, ...subjects: ReadonlyArray<string>): Loop =>
        Effect.gen(function* () {
          order.push(`${name} begins`)
          yield* Effect.sleep("10 seconds")
          order.push(`${name} ends`)
          return subjects.map(found)
        })
      yield* reconcilingWith({
        loops: {
          orphan_sweep: loop("second", "x"),
          manila_polling: loop("first", "a", "b", "c", "d", "e"),
        },
      })
      yield* trigger
      yield* pass("20 seconds")
      assert.deepEqual(order, ["first begins", "first ends", "second begins", "second ends"])
      const of = (loop: string, subject: string) => ({ ...found(subject), loop })
      const kept = ["a", "b", "c"].map((subject) => of("manila_polling", subject))
      assert.deepEqual(yield* findings, [
        { drift: [...kept, of("orphan_sweep", "x")], drift_count: 6 },
      ])
    }),
  )

  conducted(
    "truncates the drift to its limits",
    Effect.gen(function* () {
      const long = { ...found("a"), detail: "x".repeat(1000) }
      yield* reconcilingWith({ loops: { orphan_sweep: Effect.succeed([long]) } })
      yield* trigger
      const [{ drift } = { drift: [] }] = yield* findings
      assert.deepEqual(drift, [{ ...long, loop: "orphan_sweep", detail: "x".repeat(256) }])
    }),
  )

  conducted(
    "repeats and finishes a killed run",
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let runs = 0
      const loop: Loop = Effect.suspend(() => {
        runs++
        return Effect.as(Deferred.await(gate), [found("a")])
      })
      const running = yield* reconcilingWith({ loops: { orphan_sweep: loop } })
      yield* trigger
      yield* Fiber.interrupt(running)
      assert.deepEqual(yield* types("reconciliation"), [
        "ReconciliationTriggered",
        "ReconciliationStarted",
      ])
      yield* reconcilingWith({ loops: { orphan_sweep: loop } })
      yield* Deferred.succeed(gate, undefined)
      yield* settled
      assert.equal(runs, 2)
      assert.lengthOf(yield* findings, 1)
      assert.deepEqual(yield* runsAt, [0])
    }),
  )

  conducted(
    "waits while a loop cannot reach the log",
    Effect.gen(function* () {
      let is_down = true
      const down = new LogUnavailable({ detail: "The log is down." })
      const loop: Loop = Effect.suspend(() => (is_down ? Effect.fail(down) : Effect.succeed([])))
      yield* reconcilingWith({ loops: { orphan_sweep: loop } })
      yield* trigger
      yield* pass("10 seconds")
      assert.deepEqual(yield* findings, [])
      is_down = false
      yield* pass("1 seconds")
      assert.deepEqual(yield* findings, [{ drift: [], drift_count: 0 }])
    }),
  )
})

describe("a domain's settings", () => {
  conducted(
    "apply from the next run",
    Effect.gen(function* () {
      yield* reconcilingWith()
      yield* configure(2)
      yield* pass("299 seconds")
      assert.deepEqual(yield* types("domain"), ["DomainConfigured"])
      yield* pass("1 seconds")
      assert.deepEqual(yield* types("domain"), ["DomainConfigured", "DomainApplied"])
      yield* pass("1 hour")
      assert.lengthOf(yield* types("domain"), 2)
    }),
  )

  conducted(
    "wait for the following run if they change during a run",
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const loop: Loop = Effect.as(Deferred.await(gate), [])
      yield* reconcilingWith({ loops: { orphan_sweep: loop } })
      yield* trigger
      yield* configure(2)
      yield* pass("1 minutes")
      assert.deepEqual(yield* types("domain"), ["DomainConfigured"])
      yield* Deferred.succeed(gate, undefined)
      yield* pass("4 minutes")
      assert.deepEqual(yield* types("domain"), ["DomainConfigured", "DomainApplied"])
    }),
  )
})

const kinds = (differences: Effect.Success<Loop>) =>
  differences.map(({ kind, subject }) => [kind, subject])

describe("the orphan sweep", () => {
  conducted(
    "reports jobs that wait longer than their deadline, as long as they wait",
    Effect.gen(function* () {
      const sweep = yield* orphanSweep(300)
      yield* pendingTarget(1)
      yield* backUp(1, 1)
      assert.deepEqual(kinds(yield* sweep), [])
      yield* pass("301 seconds")
      assert.deepEqual(kinds(yield* sweep), [["job_waiting", jobId(1)]])
      yield* ask(...cancelJob(yield* factsOf(jobId(1))))
      assert.deepEqual(kinds(yield* sweep), [])
    }),
  )

  conducted(
    "reports repositories held by jobs that have ended",
    Effect.gen(function* () {
      const sweep = yield* orphanSweep(300)
      yield* ready(worker_id)
      yield* availableTarget(1)
      yield* backUp(1, 1)
      yield* give(jobId(1), worker_id, 1)
      assert.deepEqual(kinds(yield* sweep), [])
      yield* ask(...cancelJob(yield* factsOf(jobId(1))))
      assert.deepEqual(kinds(yield* sweep), [["lease_orphaned", jobId(1)]])
    }),
  )
})

const shares = (list: Shares["Service"]["list"]) => {
  const unused = () => Effect.die(new Error("The polling asks for the list alone."))
  const others = { find: unused, prepare: unused, release: unused, pathOf: unused }
  return Shares.of({ ...others, create: unused, finish: unused, list })
}

const polled = (list: Shares["Service"]["list"]) =>
  Effect.flatten(Effect.provideService(sharePolling, Shares, shares(list)))

describe("the polling of shares", () => {
  conducted(
    "reports policies whose share is gone",
    Effect.gen(function* () {
      for (const number of [1, 2]) {
        yield* availableTarget(number)
        const defined = { ...policy, target_id: targetId(number) }
        yield* ask(...definePolicy(shareId(number), defined, 10))
      }
      const there = shareOf(policy.project_id, shareId(1))
      const differences = yield* polled(Stream.make(there))
      assert.deepEqual(kinds(differences), [["share_gone", shareId(2)]])
    }),
  )

  conducted(
    "reports an unavailable share service",
    Effect.gen(function* () {
      const down = new BackendUnavailable({ detail: "It is down." })
      const differences = yield* polled(Stream.fail(down))
      assert.deepEqual(kinds(differences), [["backend_unavailable", "shares"]])
    }),
  )
})
