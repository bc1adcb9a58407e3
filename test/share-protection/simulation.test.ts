/**
 * Simulates many deployments. Each one goes through faults drawn from its seed and must keep the
 * laws. `npm run soak -- --only simulation` simulates many more; `--seed S` repeats one.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { Context, Effect, Fiber } from "effect"
import { describe, it } from "vitest"
import { seeded } from "../world/seeded.ts"
import {
  type Outcome,
  simulate,
  tellBroken,
} from "../world/share-protection/simulation/simulation.ts"
import { makeVirtualTime } from "../world/virtual-time.ts"

const runs_set = process.env.ALMANAC_SIMULATIONS
/**
 * After the minimum, the test stops as soon as each of `wanted` has occurred; the soak runs more.
 */
const runs_min = Number(runs_set ?? 40)
const runs_max = Number(runs_set ?? 100)
const seed_max = 2 ** 31
/** Milliseconds, on a machine that is also busy with other work. */
const timeout_ms = 300_000

/** Faults that must occur in a hundred runs; without them the runs prove little. */
const wanted = [
  "BackupCompleted",
  "BackupDeleted",
  "BackupExpired",
  "BackupFailed",
  "BackupRetried",
  "BootFailureRecorded",
  "DomainApplied",
  "JobCancelled",
  "JobCompleted",
  "JobFailed",
  "JobRecast",
  "JobRetried",
  "JobUnassigned",
  "LeaseBroken",
  "LeaseClosed",
  "PolicyDeleted",
  "ReplacementCompleted",
  "RestoreCompleted",
  "RestoreFailed",
  "RolloutHalted",
  "RolloutSucceeded",
  "SchedulerResumed",
  "TargetEnrollmentFailed",
  "TargetFormatUpgraded",
  "TickSkipped",
  "WorkerBootFailed",
  "WorkerDied",
  "WorkerRetired",
  "WorkerUndrained",
  "a command comes twice",
  "a command is lost",
  "a conductor is killed",
  "an answer is lost",
  "a machine does not come up",
  "a worker dies",
  "a worker is cut off",
  "a worker is stopped",
  "an append's answer is lost",
  "an order comes twice",
  "an order is lost",
  "news are late",
  "an order's answer is lost",
  "the clock is set",
  "the engine fails after",
  "the engine fails before",
  "the engine hangs",
  "the log is out of reach",
  "two conductors at once",
  "a job was tried again by itself",
  "a worker forgot a job",
  "BackupUndeleted",
  "BackupRestoreTested",
]

/** Faults too rare to be required in a hundred runs. */
const rare = ["BackupUndeleteFailed", "a snapshot is gone for good"]
const rare_runs = 1000

describe("the simulation", () => {
  it(
    `keeps its invariants in ${runs_min} deployments, and becomes idle in each`,
    () => {
      const first = randomInt(seed_max - runs_max)
      console.log(`simulation: seeds from ${first}`)
      const due = [...(runs_max < 100 ? [] : wanted), ...(runs_max < rare_runs ? [] : rare)]
      const missing = new Set(due)
      let runs = 0
      for (; runs < runs_min || (runs < runs_max && missing.size > 0); runs++) {
        const outcome: Outcome = simulate(first + runs)
        assert(outcome.broken === undefined, tellBroken(outcome))
        for (const what of outcome.tally.keys()) missing.delete(what)
      }
      assert.deepEqual([...missing], [], "each of these has happened")
    },
    timeout_ms,
  )

  it("is deterministic for each seed", () => {
    const seed = randomInt(seed_max)
    const [one, other] = [simulate(seed), simulate(seed)]
    assert.equal(one.fingerprint, other.fingerprint, `seed ${seed}`)
    assert.notEqual(one.fingerprint, simulate(seed + 1).fingerprint)
  })
})

describe("virtual time", () => {
  const world = () => makeVirtualTime(0, seeded(1))

  it("advances to the next timer when all fibers wait", () => {
    const time = world()
    const seen: Array<number> = []
    const sleeper = (ms: number) =>
      Effect.map(Effect.sleep(ms), () => {
        seen.push(time.now())
      })
    const main = time.fork(
      Effect.all([sleeper(3_600_000), sleeper(5), Effect.andThen(sleeper(7), sleeper(1))], {
        concurrency: "unbounded",
      }),
      Context.empty(),
    )
    time.run(() => main.pollUnsafe() !== undefined)
    assert.deepEqual(seen, [5, 7, 8, 3_600_000])
  })

  it("detects busy loops and waits that never end", () => {
    const time = world()
    time.fork(Effect.forever(Effect.yieldNow), Context.empty())
    assert.throws(() => time.run(() => false), /goes round/)
    const other = world()
    const never = other.fork(Effect.never, Context.empty())
    assert.throws(() => other.run(() => never.pollUnsafe() !== undefined), /nothing will ever/)
    assert.ok(Fiber.isFiber(never))
  })
})
