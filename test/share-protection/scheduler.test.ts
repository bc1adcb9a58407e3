import { assert, describe, it } from "@effect/vitest"
import { Scheduler } from "#actors/share-protection/scheduler.ts"
import {
  type SchedulerEvent,
  SchedulerPaused,
  SchedulerResumed,
} from "#events/share-protection/scheduler.ts"
import { PauseScheduler, ResumeScheduler } from "#schemas/share-protection/scheduler.ts"
import { at, later } from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const paused = SchedulerPaused.make({})
const resumed = SchedulerResumed.make({ at })

const states = {
  new: [],
  paused: [paused],
  resumed: [paused, resumed],
  "paused again": [paused, resumed, paused],
} satisfies Record<string, ReadonlyArray<SchedulerEvent>>

const known = (...events: ReadonlyArray<SchedulerEvent>) =>
  events.reduce(Scheduler.evolve, Scheduler.initialState)

describe("the scheduler", () => {
  everyState(Scheduler, states, {
    PauseScheduler: [
      {
        command: PauseScheduler.make({}),
        in: { paused: [], "paused again": [] },
        otherwise: [paused],
      },
    ],
    ResumeScheduler: [
      {
        command: ResumeScheduler.make({ at: later }),
        in: { new: [], resumed: [] },
        otherwise: [SchedulerResumed.make({ at: later })],
      },
    ],
  })

  it("initially runs and uses every tick", () =>
    assert.deepEqual([known().value, known().context], ["running", { resumed_at: null }]))
  it("keeps the time of its last resumption", () => {
    const again = SchedulerResumed.make({ at: later })
    assert.deepEqual(known(...states["paused again"], again).context, { resumed_at: later })
  })
  it("is stored unchanged", () =>
    assert.equal(assertStorable(Scheduler, states["paused again"]).value, "paused"))
})
