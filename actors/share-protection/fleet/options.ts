/** Options of the fleet manager. Source: document 2 §8 conductor.*. */
import type { FleetContext } from "#actors/share-protection/fleet.ts"
import type { DomainSettings } from "#schemas/share-protection/domain.ts"
import { DomainId, type ProjectId, type WorkerId } from "#schemas/share-protection/id.ts"

export interface FleetOptions {
  /** The worker project, whose id names the fleet. */
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
 * The id by which settings and rollouts name the pool of workers without a domain: that of
 * OpenStack's default domain.
 */
export const default_domain_id = DomainId.make("default")

type Bounds = Pick<FleetOptions, "min_workers" | "max_workers">

/**
 * The minimum and maximum number of workers in a domain's pool: its own settings, else the
 * configuration's. The configured minimum applies only to the default pool; others default to 0.
 */
export const workersOf = (domain_id: DomainId, own: DomainSettings, configured: Bounds): Bounds => {
  const least = domain_id === default_domain_id ? configured.min_workers : 0
  return {
    min_workers: own.min_workers ?? least,
    max_workers: own.max_workers ?? configured.max_workers,
  }
}

/** The fields of AllowBoot, by which the fleet permits a boot. */
export const bootRequest = (options: FleetOptions, worker_id: WorkerId, at: string) => ({
  worker_id,
  at,
  replacement: false,
  cooldown_seconds: options.worker_boot_cooldown_seconds,
  max_failures: options.worker_boot_max_failures,
  failure_window_seconds: options.worker_boot_failure_window_seconds,
})

/** When few enough boots failed within the window to allow another; epoch ms, 0: always. */
export const bootAllowedAt = (fleet: FleetContext | undefined, options: FleetOptions) => {
  const max = options.worker_boot_max_failures
  // Newest first: once this failure leaves the window, fewer than the maximum remain.
  const last = max === 0 ? undefined : fleet?.failures[max - 1]
  if (last === undefined) return 0
  return Date.parse(last) + options.worker_boot_failure_window_seconds * 1000
}
