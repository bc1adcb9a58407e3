/**
 * The conductor: runs the background processes of share protection. Only the holder of a lease runs
 * it. It has no durable state, so another process can take over at any moment.
 *
 * Source: document 2 §1; DESIGN of the running system, 7.
 */
import { Effect } from "effect"
import { type Process, runProcess } from "#actors/process.ts"
import { type DispatchOptions, dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import { fleetManager, type Machines } from "#actors/share-protection/fleet/manager.ts"
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
  /** Undefined if the deployment has no machines. */
  readonly machines: Machines
}

/** The processes of the conductor. */
export const processes = (options: ConductorOptions) =>
  Effect.all([
    scheduling(options.scheduling),
    dispatch(options.dispatch),
    fleetManager(options.fleet, options.machines),
    Effect.succeed<Process>(upkeep(options.upkeep)),
    Effect.succeed<Process>(reconciling(options.reconciling)),
  ])

/** Runs all processes until it is interrupted, when the lease is lost. */
export const conductor = (options: ConductorOptions) =>
  Effect.flatMap(processes(options), (all) =>
    Effect.forEach(all, runProcess, { concurrency: "unbounded", discard: true }),
  )
