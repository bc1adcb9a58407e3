/**
 * Reconciling: at every interval and when an operator requests it, compares the records with the
 * real resources and applies the configured settings of domains.
 *
 * Events record the trigger, the start and the end of a run, so that a killed run is repeated.
 *
 * Source: document 2 §2 Reconciliation status, §4, §8 conductor.reconciliation_interval, §9 (2).
 */
import { Clock, DateTime, Effect } from "effect"
import { address, Unavailable } from "#actors/commands.ts"
import type { Batch, Caused, Process } from "#actors/process.ts"
import { Domain, domainAfter } from "#actors/share-protection/domain.ts"
import { Reconciliation, reconciliationAfter } from "#actors/share-protection/reconciliation.ts"
import { Log, type LogUnavailable, parseStream } from "#events/log.ts"
import { ApplyDomain } from "#schemas/share-protection/domain.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import {
  type Drift,
  drift_kept_max,
  FinishReconciliation,
  type ReconciliationLoop,
  reconciliation_loops,
  StartReconciliation,
} from "#schemas/share-protection/reconciliation.ts"

/** Compares one kind of resource, repairs what it can, and returns the differences. */
export type Loop = Effect.Effect<ReadonlyArray<Omit<Drift, "loop">>, LogUnavailable>

export interface ReconcilingOptions {
  /** Read each time, because the configuration may be reloaded. */
  readonly reconciliation_interval_seconds: () => number
  /** Loops whose ports are unavailable are left out. */
  readonly loops: Partial<Readonly<Record<ReconciliationLoop, Loop>>>
}

const reconciliation_id = "main"

/** Maximum length of a difference's detail. */
const detail_chars_max = 256

interface View {
  state: "idle" | "asked" | "running"
  /** Epoch milliseconds; 0 before the first run. */
  started_at: number
  position: number
  /** Domains with pending settings, and the position of the commit that configured them. */
  readonly pending: Map<DomainId, number>
}

/** Applies the settings that were configured before the run started. */
const apply = ({ pending, position: started }: View): ReadonlyArray<Caused> =>
  [...pending]
    .filter(([, position]) => position < started)
    .map(([domain_id, position]) => ({
      command_id: `apply-${domain_id}-${position}`,
      cause: String(position),
      batch: [address(Domain, domain_id, ApplyDomain.make({}))],
    }))

const start = ({ position }: View, now: number): Caused => {
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  return {
    command_id: `reconcile-${position}`,
    cause: String(position),
    batch: [address(Reconciliation, reconciliation_id, StartReconciliation.make({ at }))],
  }
}

/** Runs all loops in sequence and records their drift. */
const run = ({ position }: View, { loops }: ReconcilingOptions): Caused => ({
  command_id: `reconciled-${position}`,
  cause: String(position),
  batch: Effect.forEach(reconciliation_loops, (loop) =>
    Effect.map(loops[loop] ?? Effect.succeed([]), (found) =>
      found.map((one) => ({ ...one, loop })),
    ),
  ).pipe(
    Effect.map((found): Batch => {
      const kept = found.flatMap((some) => some.slice(0, drift_kept_max))
      const drift = kept.map((one) => ({ ...one, detail: one.detail.slice(0, detail_chars_max) }))
      const drift_count = found.flat().length
      const finish = FinishReconciliation.make({ drift, drift_count })
      return [address(Reconciliation, reconciliation_id, finish)]
    }),
    Effect.mapError(({ detail }) => new Unavailable({ detail })),
  ),
})

/** Runs on a single conductor. */
export const reconciling = (options: ReconcilingOptions): Process => ({
  name: "share-protection-reconciling",
  part: "share-protection",
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    const view: View = { state: "idle", started_at: 0, position: 0, pending: new Map() }
    // The first run of a log waits for its interval like every other.
    const process_started_at = yield* Clock.currentTimeMillis
    return {
      fold: Effect.fnUntraced(function* (recorded) {
        const { name, id } = parseStream(recorded.stream)
        if (name === Domain.name) {
          const { state } = yield* domainAfter(log, recorded)
          if (state === "pending") view.pending.set(DomainId.make(id), recorded.position)
          else view.pending.delete(DomainId.make(id))
        }
        if (name !== Reconciliation.name) return
        const { state, last_started_at } = yield* reconciliationAfter(log, recorded)
        view.state = state
        view.started_at = last_started_at === null ? 0 : Date.parse(last_started_at)
        view.position = recorded.position
      }),
      due: (now) => {
        if (view.state === "running") return { now: [...apply(view), run(view, options)] }
        const interval_ms = options.reconciliation_interval_seconds() * 1000
        const next = (view.started_at || process_started_at) + interval_ms
        const is_due = view.state === "asked" || next <= now
        return is_due ? { now: [start(view, now)] } : { now: [], next }
      },
    }
  }),
})
