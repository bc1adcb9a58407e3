import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Lease } from "#actors/share-protection/lease.ts"
import {
  LeaseAcquired,
  LeaseBroken,
  LeaseClosed,
  type LeaseEvent,
  LeaseReleased,
} from "#events/share-protection/lease.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import {
  AcquireLease,
  BreakLease,
  CloseLease,
  type LeaseMode,
  lease_holds_max,
  ReleaseLease,
} from "#schemas/share-protection/lease.ts"
import { given } from "../world/given.ts"
import { worker_id } from "../world/share-protection/job-samples.ts"
import { jobId } from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

type Mode = typeof LeaseMode.Type

const one = jobId(1)
const two = jobId(2)
const reason = "Its worker died."

const acquire = (job_id: typeof one, mode: Mode, fence: number) =>
  AcquireLease.make({ job_id, worker_id, mode, fence })
const acquired = (job_id: typeof one, mode: Mode, fence: number) =>
  LeaseAcquired.make({ job_id, worker_id, mode, fence })
const released = (job_id: typeof one, fence: number) => LeaseReleased.make({ job_id, fence })
const broken = (job_id: typeof one, fence: number) => LeaseBroken.make({ job_id, fence, reason })

const states = {
  new: [],
  read: [acquired(one, "read", 1)],
  written: [acquired(one, "write", 1)],
  "held alone": [acquired(one, "exclusive", 1)],
  "read and written": [acquired(one, "write", 1), acquired(jobId(3), "read", 2)],
  "free again": [acquired(one, "exclusive", 1), released(one, 1)],
  closed: [LeaseClosed.make({})],
} satisfies Record<string, ReadonlyArray<LeaseEvent>>

const locked = "svc.repository_locked" as const
const behind = "svc.conflict" as const
const gone = "svc.not_found" as const

/** A hold of another job, with the next fence of each state. */
const next = (mode: Mode) => ({
  new: acquired(two, mode, 1),
  second: acquired(two, mode, 2),
  third: acquired(two, mode, 3),
})

describe("a lease", () => {
  everyState(Lease, states, {
    AcquireLease: [
      ...(["read", "write", "exclusive"] as const).flatMap((mode) => [
        {
          with: `to ${mode}, by the first fence`,
          command: acquire(two, mode, 1),
          in: {
            new: [next(mode).new],
            ...(mode === "read"
              ? { read: behind, written: behind, "read and written": behind }
              : {}),
            ...(mode === "write" ? { read: behind } : {}),
            "free again": behind,
            closed: gone,
          },
          otherwise: locked,
        },
        {
          with: `to ${mode}, by the second fence`,
          command: acquire(two, mode, 2),
          in: {
            new: behind,
            ...(mode === "exclusive" ? {} : { read: [next(mode).second] }),
            ...(mode === "read"
              ? { written: [next(mode).second], "read and written": behind }
              : {}),
            "free again": [next(mode).second],
            closed: gone,
          },
          otherwise: locked,
        },
        {
          with: `to ${mode}, by the third fence`,
          command: acquire(two, mode, 3),
          in: {
            new: behind,
            "free again": behind,
            closed: gone,
            ...(mode === "exclusive" ? {} : { read: behind }),
            ...(mode === "read" ? { written: behind, "read and written": [next(mode).third] } : {}),
          },
          otherwise: locked,
        },
      ]),
      {
        with: "by the job that holds it",
        command: acquire(one, "read", 2),
        in: { new: behind, "free again": [acquired(one, "read", 2)], closed: gone },
        otherwise: locked,
      },
    ],
    ReleaseLease: [
      {
        command: ReleaseLease.make({ job_id: one, fence: 1 }),
        in: { new: [], "free again": [], closed: [] },
        otherwise: [released(one, 1)],
      },
      {
        with: "by another fence",
        command: ReleaseLease.make({ job_id: one, fence: 2 }),
        otherwise: [],
      },
      {
        with: "of another job",
        command: ReleaseLease.make({ job_id: two, fence: 1 }),
        otherwise: [],
      },
    ],
    BreakLease: [
      {
        command: BreakLease.make({ job_id: one, fence: 1, reason }),
        in: { new: [], "free again": [], closed: [] },
        otherwise: [broken(one, 1)],
      },
      {
        with: "by another fence",
        command: BreakLease.make({ job_id: one, fence: 2, reason }),
        otherwise: [],
      },
      {
        with: "of another job",
        command: BreakLease.make({ job_id: two, fence: 1, reason }),
        otherwise: [],
      },
    ],
    CloseLease: [
      {
        command: CloseLease.make({}),
        in: { new: [LeaseClosed.make({})], "free again": [LeaseClosed.make({})], closed: [] },
        otherwise: locked,
      },
    ],
  })

  it("names the job, worker, mode and fence of its holder", () => {
    const state = states["read and written"].reduce(Lease.evolve, Lease.initialState)
    const refused = Lease.decide(state, acquire(two, "write", 3))
    assert(Result.isFailure(refused))
    const detail = `Job ${one} on worker ${worker_id} holds the repository (write, fence 1).`
    assert.equal(refused.failure.detail, detail)
  })

  it("never reuses a fence, even after its hold has ended", () =>
    given(Lease)(...states["read and written"], released(jobId(3), 2), broken(one, 1))
      .when(acquire(two, "exclusive", 2))
      .thenRejected(behind))

  it("keeps every other hold when one ends", () => {
    const history = [...states["read and written"], released(one, 1)]
    const { context } = history.reduce(Lease.evolve, Lease.initialState)
    assert.deepEqual(context.holds, [{ job_id: jobId(3), worker_id, mode: "read", fence: 2 }])
    assert.equal(context.fence, 2)
  })

  const readers = (count: number) =>
    Array.from({ length: count }, (_, i) => acquired(jobId(i + 10), "read", i + 1))

  it(`allows at most ${lease_holds_max} readers`, () => {
    given(Lease)(...readers(lease_holds_max - 1))
      .when(acquire(two, "read", lease_holds_max))
      .thenEvents(acquired(two, "read", lease_holds_max))
    given(Lease)(...readers(lease_holds_max))
      .when(acquire(two, "read", lease_holds_max + 1))
      .thenRejected(locked)
  })

  it("fits in a snapshot with every hold there may be, each at its longest", () => {
    const worker_id = WorkerId.make("w".repeat(64))
    const saved = assertStorable(
      Lease,
      readers(lease_holds_max).map((hold) => ({ ...hold, worker_id })),
    )
    // A fence has one or two digits here, and up to sixteen elsewhere.
    const spare = lease_holds_max * 15
    assert.isBelow(JSON.stringify(saved).length + spare, 16 * 1024)
  })
})
