/** How the fleet is kept. Source: document 2 §8 conductor.*. */
import type { FleetContext } from "#actors/share-protection/fleet.ts"
import type { DomainSettings } from "#schemas/share-protection/domain.ts"
import { DomainId, type ProjectId, type WorkerId } from "#schemas/share-protection/id.ts"

export interface FleetOptions {
  /** The worker project: its id names the fleet. */
  readonly project_id: ProjectId
  readonly worker_heartbeat_deadline_seconds: number
  readonly worker_boot_cooldown_seconds: number
  readonly worker_boot_grace_seconds: number
  readonly worker_boot_max_failures: number
  readonly worker_boot_failure_window_seconds: number
  readonly min_workers: number
  readonly max_workers: number
  /** Empty: no worker can be booted. */
  readonly worker_boot_image: string
}

/**
 * The domain that the pool of all workers without a domain goes by, in its settings and in a
 * rollout: it has the name of OpenStack's own domain of those that have none.
 */
export const default_domain_id = DomainId.make("default")

type Bounds = Pick<FleetOptions, "min_workers" | "max_workers">

/**
 * How many workers a domain's pool is to have: by its own settings, else by the configuration's.
 * The least of the configuration is the default pool's; other domains want none unless they say so.
 */
export const workersOf = (domain_id: DomainId, own: DomainSettings, configured: Bounds): Bounds => {
  const least = domain_id === default_domain_id ? configured.min_workers : 0
  return {
    min_workers: own.min_workers ?? least,
    max_workers: own.max_workers ?? configured.max_workers,
  }
}

/** What the fleet is asked before a worker boots. */
export const bootRequest = (options: FleetOptions, worker_id: WorkerId, at: string) => ({
  worker_id,
  at,
  replacement: false,
  cooldown_seconds: options.worker_boot_cooldown_seconds,
  max_failures: options.worker_boot_max_failures,
  failure_window_seconds: options.worker_boot_failure_window_seconds,
})

/** When so few boots have failed of late that one is allowed; epoch milliseconds, 0: always. */
export const bootAllowedAt = (fleet: FleetContext | undefined, options: FleetOptions) => {
  const max = options.worker_boot_max_failures
  // The newest come first: with the one at this place gone from the window there are too few.
  const last = max === 0 ? undefined : fleet?.failures[max - 1]
  if (last === undefined) return 0
  return Date.parse(last) + options.worker_boot_failure_window_seconds * 1000
}
