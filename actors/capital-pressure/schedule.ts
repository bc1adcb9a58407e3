/**
 * A scheduled job: idle ⇄ running, one run at a time.
 *
 * A run is identified by its tick. If a run never ended, because its process died, the next start
 * ends it. Reports about earlier runs change nothing. Source: document 3 §2 A SchedulerOut.
 */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import {
  ScheduledRunEnded,
  ScheduledRunFailed,
  ScheduledRunStarted,
  ScheduleEvent,
} from "#events/capital-pressure/schedule.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"
import { ScheduleCommand } from "#schemas/capital-pressure/schedule.ts"

export interface ScheduleContext {
  /** When the last run was due (RFC 3339 in UTC, like every tick); null before the first. */
  readonly tick: string | null
}

const lost = "The run did not finish: its process stopped."

const chart = setup({
  types: { context: {} as ScheduleContext, events: {} as ScheduleEvent },
  guards: {
    is_later: ({ context, event }) => context.tick === null || event.tick > context.tick,
    is_of_run: ({ context, event }) => context.tick === event.tick,
  },
  actions: { learn: assign(({ event }) => ({ tick: event.tick })) },
})

const ends = { guard: "is_of_run", target: "idle" } as const

export const machine = chart.createMachine({
  id: "capital-pressure.schedule",
  context: { tick: null },
  initial: "idle",
  states: {
    idle: {
      on: { ScheduledRunStarted: { guard: "is_later", target: "running", actions: "learn" } },
    },
    running: { on: { ScheduledRunEnded: ends, ScheduledRunFailed: ends } },
  },
})

export const Schedule = decider({
  machine,
  version: 1,
  command: ScheduleCommand,
  event: ScheduleEvent,
  rejection: Rejection,
  propose: {
    StartRun: ({ tick, at }, context, state) => {
      if (context.tick !== null && tick <= context.tick) return []
      const started = ScheduledRunStarted.make({ tick, at })
      if (context.tick === null || state.matches("idle")) return [started]
      return [ScheduledRunFailed.make({ tick: context.tick, at, detail: lost }), started]
    },
    EndRun: ({ tick, at }, context, state) =>
      state.matches("running") && tick === context.tick
        ? [ScheduledRunEnded.make({ tick, at })]
        : [],
    FailRun: ({ tick, at, detail }, context, state) =>
      state.matches("running") && tick === context.tick
        ? [ScheduledRunFailed.make({ tick, at, detail })]
        : [],
  },
  reject: () => {
    throw new Error("A scheduled job rejects no command.")
  },
})
