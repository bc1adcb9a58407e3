import { assert, describe, it } from "@effect/vitest"
import { Reconciliation } from "#actors/share-protection/reconciliation.ts"
import {
  type ReconciliationEvent,
  ReconciliationFinished,
  ReconciliationStarted,
  ReconciliationTriggered,
} from "#events/share-protection/reconciliation.ts"
import {
  drift_kept_max,
  FinishReconciliation,
  reconciliation_loops,
  StartReconciliation,
  TriggerReconciliation,
} from "#schemas/share-protection/reconciliation.ts"
import { at, later, longest } from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const drift = [
  {
    loop: "manila_polling",
    kind: "share_gone",
    subject: "share-1",
    detail: "The share of a policy is not there any more.",
  },
] as const
const found = { drift, drift_count: 12 }

const triggered = ReconciliationTriggered.make({})
const started = (at: string) => ReconciliationStarted.make({ at })
const finished = ReconciliationFinished.make(found)

const states = {
  idle: [],
  triggered: [triggered],
  running: [started(at)],
  "running because it was triggered": [triggered, started(at)],
  "idle again": [started(at), finished],
  "triggered again": [started(at), finished, triggered],
} satisfies Record<string, ReadonlyArray<ReconciliationEvent>>

const conflict = "svc.conflict"

const known = (...events: ReadonlyArray<ReconciliationEvent>) =>
  events.reduce(Reconciliation.evolve, Reconciliation.initialState)

describe("reconciliation", () => {
  everyState(Reconciliation, states, {
    TriggerReconciliation: [
      {
        command: TriggerReconciliation.make({}),
        in: { idle: [triggered], "idle again": [triggered] },
        otherwise: [],
      },
    ],
    StartReconciliation: [
      {
        command: StartReconciliation.make({ at: later }),
        in: { running: conflict, "running because it was triggered": conflict },
        otherwise: [started(later)],
      },
    ],
    FinishReconciliation: [
      {
        command: FinishReconciliation.make(found),
        in: { running: [finished], "running because it was triggered": [finished] },
        otherwise: conflict,
      },
    ],
  })

  it("keeps the time and the drift of its last run", () => {
    assert.deepEqual(known().context, { last_started_at: null, drift: [], drift_count: 0 })
    assert.deepEqual(known(...states["idle again"]).context, { last_started_at: at, ...found })
  })
  it("keeps the last drift while the next run is in progress", () =>
    assert.deepEqual(known(...states["triggered again"], started(later)).context, {
      last_started_at: later,
      ...found,
    }))
  it("clears the drift after a run without findings", () => {
    const clean = ReconciliationFinished.make({ drift: [], drift_count: 0 })
    assert.deepEqual(known(...states["idle again"], started(later), clean).context, {
      last_started_at: later,
      drift: [],
      drift_count: 0,
    })
  })

  it("fits in a snapshot with as much drift as is kept, each at its longest", () => {
    const many = Array.from({ length: drift_kept_max * reconciliation_loops.length }, () => ({
      loop: "rebuild_from_repository" as const,
      kind: "k".repeat(64),
      subject: "s".repeat(128),
      detail: longest(256),
    }))
    const full = ReconciliationFinished.make({ drift: many, drift_count: 2 ** 53 - 1 })
    assertStorable(Reconciliation, [started(at), full, started(later)])
  })
})
