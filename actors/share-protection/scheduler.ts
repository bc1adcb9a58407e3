/** The scheduler of policies: running ⇄ paused. Source: document 2 §3 Scheduler. */
import { Effect } from "effect"
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  SchedulerEvent,
  SchedulerPaused,
  SchedulerResumed,
} from "#events/share-protection/scheduler.ts"
import { Rejection } from "#schemas/share-protection/rejection.ts"
import { SchedulerCommand } from "#schemas/share-protection/scheduler.ts"

/** The only aggregate of its kind. */
export const scheduler_id = "main"

export interface SchedulerContext {
  /** Ticks count from this time, RFC 3339; null if it was never paused. */
  readonly resumed_at: string | null
}

export const machine = setup({
  types: { context: {} as SchedulerContext, events: {} as SchedulerEvent },
}).createMachine({
  id: "share-protection.scheduler",
  context: { resumed_at: null },
  initial: "running",
  states: {
    running: { on: { SchedulerPaused: "paused" } },
    paused: {
      on: {
        SchedulerResumed: {
          target: "running",
          actions: assign(({ event }) => ({ resumed_at: event.at })),
        },
      },
    },
  },
})

export const Scheduler = decider({
  machine,
  version: 1,
  command: SchedulerCommand,
  event: SchedulerEvent,
  rejection: Rejection,
  propose: {
    PauseScheduler: (_, _context, state) =>
      state.matches("paused") ? [] : [SchedulerPaused.make({})],
    ResumeScheduler: ({ at }, _, state) =>
      state.matches("running") ? [] : [SchedulerResumed.make({ at })],
  },
  reject: () => {
    throw new Error("The scheduler rejects no command.")
  },
})

/** The scheduler after one of its commits. */
export const schedulerAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Scheduler, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine.
    state: state.value as "running" | "paused",
    ...(state.context as SchedulerContext),
  }))
