import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Fleet, type FleetContext } from "#actors/share-protection/fleet.ts"
import {
  BootAllowed,
  BootFailureRecorded,
  type FleetEvent,
  RolloutAllowed,
  RolloutEnded,
} from "#events/share-protection/fleet.ts"
import {
  AllowBoot,
  AllowRollout,
  boot_failures_kept,
  EndRollout,
  RecordBootFailure,
} from "#schemas/share-protection/fleet.ts"
import { RolloutId } from "#schemas/share-protection/id.ts"
import { given } from "../world/given.ts"
import { worker_id } from "../world/share-protection/job-samples.ts"
import { uuid } from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

/** RFC 3339 timestamp, in seconds after noon. */
const noon = (seconds: number) =>
  new Date(Date.parse("2026-11-20T12:00:00.000Z") + seconds * 1000).toISOString()

const options = {
  cooldown_seconds: 180,
  max_failures: 3,
  failure_window_seconds: 7200,
  replacement: false,
}
const boot = (seconds: number, more: Partial<typeof options> = {}) => ({
  ...options,
  ...more,
  worker_id,
  at: noon(seconds),
})
const allow = (seconds: number, more: Partial<typeof options> = {}) =>
  AllowBoot.make(boot(seconds, more))
const allowed = (seconds: number, more: Partial<typeof options> = {}) =>
  BootAllowed.make(boot(seconds, more))

const reason = "It did not come up."
const failed = (seconds: number) =>
  BootFailureRecorded.make({ worker_id, at: noon(seconds), reason })

const rollout_id = RolloutId.make(uuid(1))
const other_rollout_id = RolloutId.make(uuid(2))
const rollout = RolloutAllowed.make({ rollout_id })

const booted = allowed(4, { max_failures: 0 })

const states = {
  new: [],
  "a worker booted": [allowed(0)],
  "boots failed": [failed(-1), failed(-2), failed(-3)],
  "a rollout runs": [rollout],
  "a rollout ended": [rollout, RolloutEnded.make({ rollout_id })],
} satisfies Record<string, ReadonlyArray<FleetEvent>>

const unavailable = "svc.worker_unavailable"
const conflict = "svc.conflict"

const fleet = given(Fleet)
const known = (...events: ReadonlyArray<FleetEvent>): FleetContext =>
  events.reduce(Fleet.evolve, Fleet.initialState).context

describe("a fleet", () => {
  everyState(Fleet, states, {
    AllowBoot: [
      {
        with: "at once",
        command: allow(1),
        in: { "a worker booted": unavailable, "boots failed": unavailable },
        otherwise: [allowed(1)],
      },
      {
        with: "at once, to replace another",
        command: allow(1, { replacement: true }),
        in: { "boots failed": unavailable },
        otherwise: [allowed(1, { replacement: true })],
      },
      {
        with: "after hours",
        command: allow(7200),
        otherwise: [allowed(7200)],
      },
    ],
    RecordBootFailure: [
      {
        command: RecordBootFailure.make({ worker_id, at: noon(5), reason }),
        otherwise: [failed(5)],
      },
    ],
    AllowRollout: [
      {
        command: AllowRollout.make({ rollout_id: other_rollout_id }),
        in: { "a rollout runs": conflict },
        otherwise: [RolloutAllowed.make({ rollout_id: other_rollout_id })],
      },
      {
        with: "again",
        command: AllowRollout.make({ rollout_id }),
        in: { "a rollout runs": conflict },
        otherwise: [rollout],
      },
    ],
    EndRollout: [
      {
        command: EndRollout.make({ rollout_id }),
        in: { "a rollout runs": [RolloutEnded.make({ rollout_id })] },
        otherwise: [],
      },
      {
        with: "of another one",
        command: EndRollout.make({ rollout_id: other_rollout_id }),
        otherwise: [],
      },
    ],
  })

  it("boots the next worker exactly when the cooldown ends", () => {
    fleet(allowed(0)).when(allow(179.999)).thenRejected(unavailable)
    fleet(allowed(0)).when(allow(180)).thenEvents(allowed(180))
  })
  it("counts the cooldown from the last boot, including replacements", () =>
    fleet(allowed(0), allowed(100, { replacement: true }))
      .when(allow(200))
      .thenRejected(unavailable))
  it("has no cooldown if it is 0 s", () =>
    fleet(allowed(0))
      .when(allow(0, { cooldown_seconds: 0 }))
      .thenEvents(allowed(0, { cooldown_seconds: 0 })))

  it("stops exactly at the maximum number of failures", () => {
    fleet(failed(0), failed(1)).when(allow(2)).thenEvents(allowed(2))
    fleet(failed(0), failed(1), failed(2)).when(allow(2)).thenRejected(unavailable)
  })
  it("continues exactly when a failure leaves the window", () => {
    const history = [failed(0), failed(1), failed(2)]
    fleet(...history)
      .when(allow(7199.999))
      .thenRejected(unavailable)
    fleet(...history)
      .when(allow(7200))
      .thenEvents(allowed(7200))
  })
  it("never stops if failures are not limited", () =>
    fleet(failed(0), failed(0), failed(0), failed(0))
      .when(allow(1, { max_failures: 0 }))
      .thenEvents(allowed(1, { max_failures: 0 })))

  it("cannot end a rollout that does not run", () => {
    const state = Fleet.evolve(Fleet.initialState, rollout)
    assert.isFalse(state.can(RolloutEnded.make({ rollout_id: other_rollout_id })))
  })

  it("names the running rollout", () => {
    const state = Fleet.evolve(Fleet.initialState, rollout)
    const refused = Fleet.decide(state, AllowRollout.make({ rollout_id: other_rollout_id }))
    assert(Result.isFailure(refused))
    assert.equal(refused.failure.detail, `Rollout ${rollout_id} is running.`)
  })

  it("keeps the times of failed boots, newest first, in any order of events", () =>
    assert.deepEqual(known(failed(2), failed(1), failed(3), booted, rollout), {
      rollout_id,
      booted_at: booted.at,
      failures: [noon(3), noon(2), noon(1)],
    }))

  it("drops the oldest failures beyond its limit, and fits in a snapshot", () => {
    const history = Array.from({ length: boot_failures_kept + 1 }, (_, i) => failed(i))
    const { failures } = known(...history)
    assert.lengthOf(failures, boot_failures_kept)
    assert.equal(failures[0], noon(boot_failures_kept))
    assert.equal(failures.at(-1), noon(1))
    assertStorable(Fleet, [...history, booted, rollout])
  })
})
