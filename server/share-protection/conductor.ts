/** The conductor of share protection in this process, while it holds the lease. */
import { Context, Effect, Option } from "effect"
import { Leases } from "#actors/leases.ts"
import { Compute } from "#actors/share-protection/ports/compute.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { type ConductorOptions, conductor } from "#actors/share-protection/processes/conductor.ts"
import { orphanSweep } from "#actors/share-protection/processes/orphan-sweep.ts"
import type { Loop } from "#actors/share-protection/processes/reconciling.ts"
import { repositoryRebuild } from "#actors/share-protection/processes/repository-rebuild.ts"
import { sharePolling } from "#actors/share-protection/processes/share-polling.ts"
import { serveImages } from "#adapters/share-protection/images-nats.ts"
import type { BusAvailability } from "#bus"
import { NatsConnection } from "#bus"
import type { Settings } from "#schemas/settings.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import type { ReconciliationLoop } from "#schemas/share-protection/reconciliation.ts"
import { withLease } from "#server/lease.ts"
import { firstOf } from "#server/problems.ts"

/** The lease of the conductor. */
const lease = "share-protection-conductor"

/** The problem of the bus or of the lease's holder, as `describe` sees it. */
const leaseProblem = Effect.fnUntraced(function* (
  { isUp, problem }: BusAvailability,
  describe: (holder: string | undefined) => string | undefined,
) {
  const { holderOf } = yield* Leases
  const elsewhere = holderOf(lease).pipe(
    Effect.map(describe),
    // A lost connection may reconnect in a moment.
    Effect.catch(({ detail }) =>
      Effect.sync(() => (isUp() ? `state is unknown: ${detail}` : undefined)),
    ),
  )
  return firstOf(problem, elsewhere)
})

/** Why no other process conducts; undefined if one does. */
export const conductedElsewhere = (bus: BusAvailability) =>
  leaseProblem(bus, (holder) =>
    holder === undefined ? "is not running in any process" : undefined,
  )

/** The reconciliation loops that this deployment supports. */
const loopsOf = Effect.fnUntraced(function* (
  { conductor }: Settings,
  outside: Context.Context<never>,
) {
  const loops: Partial<Record<ReconciliationLoop, Loop>> = {
    manila_polling: yield* sharePolling,
    orphan_sweep: yield* orphanSweep(conductor.queued_job_deadline_seconds),
  }
  const engine = Context.getOption(outside, Engine)
  if (Option.isSome(engine)) {
    loops.rebuild_from_repository = yield* Effect.provideService(
      repositoryRebuild,
      Engine,
      engine.value,
    )
  }
  return loops
})

const optionsOf = Effect.fnUntraced(function* (
  settings: () => Settings,
  outside: Context.Context<never>,
) {
  const { conductor, worker, quota } = settings()
  const { worker_project } = yield* (yield* Trusts).service
  const machines = Context.getOption(outside, Compute)
  const options: ConductorOptions = {
    scheduling: {
      scheduler_interval_seconds: conductor.scheduler_interval,
      schedule_jitter_seconds: conductor.schedule_jitter_seconds,
      quotas: quota,
    },
    dispatch: { ...conductor, ...worker },
    fleet: { ...conductor, project_id: ProjectId.make(worker_project.id) },
    upkeep: conductor,
    reconciling: {
      reconciliation_interval_seconds: () => settings().conductor.reconciliation_interval,
      loops: yield* loopsOf(settings(), outside),
    },
    machines: Option.getOrUndefined(machines),
  }
  return options
})

/**
 * Conducts in the background until the scope closes. Returns an effect with the reason why it does
 * not; undefined while it does or waits for the lease.
 */
export const conducting = Effect.fnUntraced(function* (
  node_id: string,
  settings: () => Settings,
  outside: Context.Context<never>,
  bus: BusAvailability,
) {
  const { connection } = yield* NatsConnection
  const turn = yield* leaseProblem(bus, () => undefined)
  let why: string | undefined
  let conducts = false
  yield* withLease(lease, node_id, () =>
    Effect.suspend(() => {
      why = undefined
      conducts = true
      return Effect.gen(function* () {
        const options = yield* optionsOf(settings, outside)
        if (options.machines !== undefined) yield* serveImages(connection, options.machines)
        return yield* conductor(options)
      })
    }).pipe(
      Effect.scoped,
      Effect.tapCause(() =>
        Effect.sync(() => {
          why = "restarts after a failure: see the server's log"
        }),
      ),
      Effect.ensuring(
        Effect.sync(() => {
          conducts = false
        }),
      ),
    ),
  )
  const own = Effect.sync(() => why)
  return firstOf(
    bus.problem,
    Effect.suspend(() => (conducts ? own : firstOf(own, turn))),
  )
})
