/**
 * Growth: boots another worker if a pool has too few, or if jobs wait for a slot.
 *
 * Source: document 2 §8 conductor.min_workers, worker_boot_*; DECISIONS, document 2, domains.
 */
import { DateTime } from "effect"
import { address } from "#actors/commands.ts"
import type { Caused, Due } from "#actors/process.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import { freeSlots, startable } from "#actors/share-protection/dispatch/plan.ts"
import type { KnownWorker } from "#actors/share-protection/dispatch/view.ts"
import {
  bootAllowedAt,
  bootRequest,
  default_domain_id,
  type FleetOptions,
  workersOf,
} from "#actors/share-protection/fleet/options.ts"
import type { FleetView } from "#actors/share-protection/fleet/view.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { AllowBoot } from "#schemas/share-protection/fleet.ts"
import { type DomainId, WorkerId } from "#schemas/share-protection/id.ts"
import { BootWorker } from "#schemas/share-protection/worker.ts"

/** The settings of a worker pool. The default pool has no domain. */
interface Pool {
  readonly domain_id: DomainId | null
  readonly min_workers: number
  readonly max_workers: number
  readonly image: string
}

/** The default pool, and one for each domain that has its own workers. */
const poolsOf = ({ domains }: FleetView, options: FleetOptions): ReadonlyArray<Pool> => {
  const pool = (domain_id: DomainId): Pool => {
    const own = domains.get(domain_id) ?? {}
    return {
      domain_id: domain_id === default_domain_id ? null : domain_id,
      ...workersOf(domain_id, own, options),
      image: own.worker_boot_image ?? options.worker_boot_image,
    }
  }
  const others = [...domains.keys()].filter((domain_id) => domain_id !== default_domain_id)
  return [default_domain_id, ...others].map(pool)
}

const isLive = ({ state }: KnownWorker) => state === "ready" || state === "booting"

/** Whether more jobs wait than workers boot, as each brings at least one slot. */
const needsSlots = (view: FleetView) => {
  if (freeSlots(view).length > 0) return false
  const jobs = startable(view)
  for (const { state } of view.workers.values()) if (state === "booting") jobs.next()
  return jobs.next().done !== true
}

/** When the fleet may boot the next worker, as epoch milliseconds. */
const bootableAt = ({ fleet }: FleetView, options: FleetOptions) => {
  const booted_at = fleet?.booted_at ?? null
  const cool_at =
    booted_at === null ? 0 : Date.parse(booted_at) + options.worker_boot_cooldown_seconds * 1000
  return Math.max(cool_at, bootAllowedAt(fleet, options))
}

/** Boots another worker for the first pool that has too few. */
export const growth = (view: FleetView, options: FleetOptions, now: number): Due => {
  const live = [...view.workers.values()].filter(isLive)
  const pool = poolsOf(view, options).find(({ domain_id, min_workers, max_workers, image }) => {
    const count = live.filter((worker) => worker.domain_id === domain_id).length
    const target_count = domain_id === null && needsSlots(view) ? count + 1 : min_workers
    return image !== "" && count < Math.min(target_count, max_workers)
  })
  if (pool === undefined) return { now: [] }
  const bootable_at = bootableAt(view, options)
  if (bootable_at > now) return { now: [], next: bootable_at }
  return { now: [newWorker(view, options, pool, now)] }
}

const newWorker = (
  { fleet_position }: FleetView,
  options: FleetOptions,
  { domain_id, image }: Pool,
  now: number,
): Caused => {
  const command_id = `boot-${options.project_id}-${fleet_position}`
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  const worker_id = WorkerId.make(derivedId(command_id, at))
  const { project_id } = options
  return {
    command_id,
    cause: String(fleet_position),
    batch: [
      address(Fleet, project_id, AllowBoot.make({ ...bootRequest(options, worker_id, at) })),
      address(Worker, worker_id, BootWorker.make({ project_id, domain_id, image })),
    ],
  }
}
