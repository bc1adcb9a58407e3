import { assert, describe, it } from "@effect/vitest"
import { Schedule } from "#actors/capital-pressure/schedule.ts"
import {
  ScheduledRunEnded,
  ScheduledRunFailed,
  ScheduledRunStarted,
  type ScheduleEvent,
} from "#events/capital-pressure/schedule.ts"
import { EndRun, FailRun, StartRun } from "#schemas/capital-pressure/schedule.ts"
import { coded } from "../world/capital-pressure/coded.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const tick = "2026-11-19T22:00:00.000Z"
const at = "2026-11-19T22:00:00.100Z"
const next = "2026-11-20T22:00:00.000Z"
const later = "2026-11-20T22:00:00.100Z"
const detail = "3 of 20 feeds failed."

const started = ScheduledRunStarted.make({ tick, at })
const ended = ScheduledRunEnded.make({ tick, at })
const failed = ScheduledRunFailed.make({ tick, at, detail })
const again = ScheduledRunStarted.make({ tick: next, at: later })

const states = {
  new: [],
  running: [started],
  "idle after a run": [started, ended],
  "idle after a failure": [started, failed],
  "running the next": [started, ended, again],
} satisfies Record<string, ReadonlyArray<ScheduleEvent>>

describe("a job of the scheduler", () => {
  everyState(coded(Schedule), states, {
    StartRun: [
      {
        with: "of the first tick",
        command: StartRun.make({ tick, at }),
        in: { new: [started] },
        otherwise: [],
      },
      {
        with: "of the next tick",
        command: StartRun.make({ tick: next, at: later }),
        in: {
          running: [
            ScheduledRunFailed.make({
              tick,
              at: later,
              detail: "The run did not finish: its process stopped.",
            }),
            again,
          ],
          "running the next": [],
        },
        otherwise: [again],
      },
    ],
    EndRun: [
      { command: EndRun.make({ tick, at }), in: { running: [ended] }, otherwise: [] },
      {
        with: "of a run that never was",
        command: EndRun.make({ tick: "2026-11-01T22:00:00.000Z", at }),
        otherwise: [],
      },
    ],
    FailRun: [
      { command: FailRun.make({ tick, at, detail }), in: { running: [failed] }, otherwise: [] },
    ],
  })

  it("is stored as it is", () => {
    assert.deepEqual(assertStorable(Schedule, states["running the next"]), {
      machine: 1,
      value: "running",
      context: { tick: next },
    })
  })

  it("is corrupt where two runs overlap, or another than the one that runs ends", () => {
    const running = Schedule.evolve(Schedule.initialState, started)
    for (const event of [again, ScheduledRunEnded.make({ tick: next, at: later })]) {
      assert.throws(() => Schedule.evolve(running, event), "cannot happen in this state")
    }
    const idle = Schedule.evolve(running, ended)
    for (const event of [started, ended, failed]) {
      assert.throws(() => Schedule.evolve(idle, event), "cannot happen in this state")
    }
  })
})
