/**
 * The conductor: everything of share protection that happens by itself. One process of all runs
 * it, the holder of a lease; it keeps nothing, so that another may go on at any moment.
 *
 * Source: document 2 §1; DESIGN of the running system, 7.
 */
import { Effect } from "effect"
import { type Process, runProcess } from "#actors/process.ts"
import { type DispatchOptions, dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import { fleetManager, type Machines } from "#actors/share-protection/fleet/keeping.ts"
import type { FleetOptions } from "#actors/share-protection/fleet/options.ts"
import {
  type ReconcilingOptions,
  reconciling,
} from "#actors/share-protection/processes/reconciling.ts"
import {
  type SchedulingOptions,
  scheduling,
} from "#actors/share-protection/processes/scheduling.ts"
import { type UpkeepOptions, upkeep } from "#actors/share-protection/processes/upkeep.ts"

export interface ConductorOptions {
  readonly scheduling: SchedulingOptions
  readonly dispatch: DispatchOptions
  readonly fleet: FleetOptions
  readonly upkeep: UpkeepOptions
  readonly reconciling: ReconcilingOptions
  /** undefined: no machines can be had. */
  readonly machines: Machines
}

/** What it consists of. */
export const processes = (options: ConductorOptions) =>
  Effect.all([
    scheduling(options.scheduling),
    dispatch(options.dispatch),
    fleetManager(options.fleet, options.machines),
    Effect.succeed<Process>(upkeep(options.upkeep)),
    Effect.succeed<Process>(reconciling(options.reconciling)),
  ])

/** Conducts until it is interrupted, which is when the lease is lost. */
export const conductor = (options: ConductorOptions) =>
  Effect.flatMap(processes(options), (all) =>
    Effect.forEach(all, runProcess, { concurrency: "unbounded", discard: true }),
  )
