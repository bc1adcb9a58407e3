/**
 * Reconciliation: idle → running → idle, or earlier when an operator triggers it.
 *
 * If a conductor is killed during a run, the next conductor finishes the run.
 *
 * Source: document 2 §2 Reconciliation status, §4; DECISIONS, document 2, other admin answers.
 */
import { Effect, Struct } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  ReconciliationEvent,
  ReconciliationFinished,
  ReconciliationStarted,
  ReconciliationTriggered,
} from "#events/share-protection/reconciliation.ts"
import { type Drift, ReconciliationCommand } from "#schemas/share-protection/reconciliation.ts"
import { Conflict, Rejection } from "#schemas/share-protection/rejection.ts"

/** The only aggregate of its kind. */
export const reconciliation_id = "main"

export interface ReconciliationContext {
  /** RFC 3339; null before the first run. */
  readonly last_started_at: string | null
  /** The drift that the last finished run found. */
  readonly drift: ReadonlyArray<Drift>
  readonly drift_count: number
}

const chart = setup({
  types: { context: {} as ReconciliationContext, events: {} as ReconciliationEvent },
  actions: {
    start: assign(({ event }) =>
      event.type === "ReconciliationStarted" ? { last_started_at: event.at } : {},
    ),
    finish: assign(({ event }) =>
      event.type === "ReconciliationFinished" ? Struct.omit(event, ["type"]) : {},
    ),
  },
})

const start = { ReconciliationStarted: { target: "running", actions: "start" } } as const

export const machine = chart.createMachine({
  id: "share-protection.reconciliation",
  context: { last_started_at: null, drift: [], drift_count: 0 },
  initial: "idle",
  states: {
    idle: { on: { ...start, ReconciliationTriggered: "asked" } },
    asked: { on: start },
    running: { on: { ReconciliationFinished: { target: "idle", actions: "finish" } } },
  },
})

const reject = (state: SnapshotFrom<typeof machine>, command: ReconciliationCommand): Rejection =>
  new Conflict({ detail: `Reconciliation is ${state.value} and rejects ${command.type}.` })

export const Reconciliation = decider({
  machine,
  version: 1,
  command: ReconciliationCommand,
  event: ReconciliationEvent,
  rejection: Rejection,
  propose: {
    TriggerReconciliation: (_, _context, state) =>
      state.matches("idle") ? [ReconciliationTriggered.make({})] : [],
    StartReconciliation: ({ at }) => [ReconciliationStarted.make({ at })],
    FinishReconciliation: ({ drift, drift_count }) => [
      ReconciliationFinished.make({ drift, drift_count }),
    ],
  },
  reject,
})

/** Reconciliation after one of its commits. */
export const reconciliationAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Reconciliation, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine.
    state: state.value as "idle" | "asked" | "running",
    ...(state.context as ReconciliationContext),
  }))
