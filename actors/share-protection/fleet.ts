/**
 * The fleet of one worker project: permits boots, and holds the running rollout.
 *
 * Source: document 2 §8 conductor.worker_boot_*; DECISIONS, document 2, worker, rollouts.
 */
import { DateTime, Effect } from "effect"
import { and, assign, or, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  BootAllowed,
  BootFailureRecorded,
  FleetEvent,
  RolloutAllowed,
  RolloutEnded,
} from "#events/share-protection/fleet.ts"
import { boot_failures_kept, FleetCommand } from "#schemas/share-protection/fleet.ts"
import type { RolloutId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  type Rejection as Refusal,
  Rejection,
  WorkerUnavailable,
} from "#schemas/share-protection/rejection.ts"

export interface FleetContext {
  /** The running rollout. */
  readonly rollout_id: RolloutId | null
  /** When the last boot was allowed, RFC 3339. */
  readonly booted_at: string | null
  /** Times of failed boots, RFC 3339: newest first, at most `boot_failures_kept`. */
  readonly failures: ReadonlyArray<string>
}

type Context = FleetContext
type BootRequest = Omit<typeof BootAllowed.Type, "type">

const epochMs = (at: string) => DateTime.toEpochMillis(DateTime.makeUnsafe(at))

/** Whether `before` is less than `seconds` before `at`. */
const isWithin = (before: string, at: string, seconds: number) =>
  epochMs(at) - epochMs(before) < seconds * 1000

const isCool = ({ booted_at }: Context, { at, cooldown_seconds }: BootRequest) =>
  booted_at === null || !isWithin(booted_at, at, cooldown_seconds)

const failuresWithin = ({ failures }: Context, { at, failure_window_seconds }: BootRequest) =>
  failures.filter((failed_at) => isWithin(failed_at, at, failure_window_seconds)).length

const chart = setup({
  types: { context: {} as Context, events: {} as FleetEvent },
  guards: {
    is_replacement: ({ event }) => event.type === "BootAllowed" && event.replacement,
    is_cool: ({ context, event }) => event.type === "BootAllowed" && isCool(context, event),
    fails_seldom: ({ context, event }) =>
      event.type === "BootAllowed" &&
      (event.max_failures === 0 || failuresWithin(context, event) < event.max_failures),
    has_no_rollout: ({ context }) => context.rollout_id === null,
    is_running: ({ context, event }) =>
      event.type === "RolloutEnded" && event.rollout_id === context.rollout_id,
  },
})

export const machine = chart.createMachine({
  id: "share-protection.fleet",
  context: { rollout_id: null, booted_at: null, failures: [] },
  initial: "open",
  states: {
    open: {
      on: {
        BootAllowed: {
          guard: and([or(["is_replacement", "is_cool"]), "fails_seldom"]),
          actions: assign(({ event }) => ({ booted_at: event.at })),
        },
        BootFailureRecorded: {
          actions: assign(({ context, event }) => ({
            failures: [event.at, ...context.failures]
              .toSorted()
              .toReversed()
              .slice(0, boot_failures_kept),
          })),
        },
        RolloutAllowed: {
          guard: "has_no_rollout",
          actions: assign(({ event }) => ({ rollout_id: event.rollout_id })),
        },
        RolloutEnded: { guard: "is_running", actions: assign({ rollout_id: null }) },
      },
    },
  },
})

const reject = ({ context }: SnapshotFrom<typeof machine>, command: FleetCommand): Refusal => {
  if (command.type === "AllowRollout") {
    return new Conflict({ detail: `Rollout ${context.rollout_id} is running.` })
  }
  // Failures are always recorded, and ending a rollout that does not run has no effect.
  if (command.type !== "AllowBoot") throw new Error(`${command.type} is never rejected`)
  if (!command.replacement && !isCool(context, command)) {
    return new WorkerUnavailable({
      detail: `A worker booted at ${context.booted_at}: the next boot waits for the cooldown.`,
    })
  }
  return new WorkerUnavailable({
    detail: `${failuresWithin(context, command)} worker boots failed within the window.`,
  })
}

export const Fleet = decider({
  machine,
  version: 1,
  command: FleetCommand,
  event: FleetEvent,
  rejection: Rejection,
  propose: {
    AllowBoot: ({ type: _, ...boot }) => [BootAllowed.make(boot)],
    RecordBootFailure: ({ type: _, ...failure }) => [BootFailureRecorded.make(failure)],
    AllowRollout: ({ rollout_id }) => [RolloutAllowed.make({ rollout_id })],
    EndRollout: ({ rollout_id }, context) =>
      rollout_id === context.rollout_id ? [RolloutEnded.make({ rollout_id })] : [],
  },
  reject,
})

/** The fleet after one of its commits. */
export const fleetAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Fleet, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine.
    state: state.value as "open",
    ...(state.context as FleetContext),
  }))
