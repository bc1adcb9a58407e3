/**
 * The steps of a rollout: replaces the next worker and evaluates the previous replacement.
 *
 * Source: document 2 §6, §9 (5); DECISIONS, document 2, rollouts.
 */
import { DateTime } from "effect"
import { address } from "#actors/commands.ts"
import type { Batch, Due } from "#actors/process.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import type { KnownWorker } from "#actors/share-protection/dispatch/view.ts"
import {
  bootAllowedAt,
  bootRequest,
  default_domain_id,
  type FleetOptions,
} from "#actors/share-protection/fleet/options.ts"
import type { FleetView } from "#actors/share-protection/fleet/view.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { AllowBoot, EndRollout } from "#schemas/share-protection/fleet.ts"
import { type DomainId, WorkerId } from "#schemas/share-protection/id.ts"
import {
  CompleteReplacement,
  CompleteRolloutDomain,
  FailReplacement,
  StartReplacement,
} from "#schemas/share-protection/rollout.ts"
import { reasonOf } from "#schemas/share-protection/text.ts"
import {
  BootWorker,
  DrainWorker,
  RetireWorker,
  UndrainWorker,
} from "#schemas/share-protection/worker.ts"

type Running = NonNullable<FleetView["rollout"]>

/** The image of a worker: that of its boot, else the version that its agent reports. */
const imageOf = ({ image, image_version }: KnownWorker) => image ?? image_version

/** At most one step, because the next one depends on its commits. */
export const rolloutSteps = (view: FleetView, options: FleetOptions, now: number): Due => {
  const { rollout } = view
  const domain_id = rollout?.domain_ids[rollout.domain_index]
  if (rollout === undefined || domain_id === undefined) return { now: [] }
  const { batch, next } =
    rollout.replacement === null
      ? replacement(view, rollout, domain_id, options, now)
      : { batch: outcome(view, rollout, rollout.replacement, options) }
  if (batch === undefined) return { now: [], next: next ?? Infinity }
  let newest = Math.max(rollout.position, view.fleet_position)
  for (const { position } of view.workers.values()) newest = Math.max(newest, position)
  // A new id, and so another attempt, after any commit that the step depends on.
  const command_id = `rollout-${rollout.rollout_id}-${rollout.position}-${newest}`
  return { now: [{ command_id, cause: String(rollout.position), batch }] }
}

interface Step {
  /** Undefined while waiting for a booting worker or until `next` (epoch milliseconds). */
  readonly batch: Batch | undefined
  readonly next?: number
}

/** Replaces the next worker of the domain that runs an old image. */
const replacement = (
  view: FleetView,
  rollout: Running,
  domain_id: DomainId,
  options: FleetOptions,
  now: number,
): Step => {
  const outdated = [...view.workers].filter(
    ([, worker]) =>
      (worker.domain_id ?? default_domain_id) === domain_id && imageOf(worker) !== rollout.image,
  )
  const [first] = outdated.filter(([, { state }]) => state === "ready")
  if (first === undefined) {
    const is_booting = outdated.some(([, { state }]) => state === "booting")
    return { batch: is_booting ? undefined : completeDomain(rollout, domain_id, options) }
  }
  const allowed_at = bootAllowedAt(view.fleet, options)
  if (allowed_at > now) return { batch: undefined, next: allowed_at }
  return { batch: replace(rollout, first, options, now) }
}

const replace = (
  { rollout_id, image, position }: Running,
  [old_worker_id, worker]: readonly [WorkerId, KnownWorker],
  options: FleetOptions,
  now: number,
): Batch => {
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  const new_worker_id = WorkerId.make(derivedId(`${rollout_id}-${position}`, at))
  const project_id = worker.project_id ?? options.project_id
  const { domain_id } = worker
  const allowed = { ...bootRequest(options, new_worker_id, at), replacement: true }
  return [
    address(Rollout, rollout_id, StartReplacement.make({ old_worker_id, new_worker_id })),
    address(Worker, old_worker_id, DrainWorker.make({})),
    address(Fleet, options.project_id, AllowBoot.make(allowed)),
    address(Worker, new_worker_id, BootWorker.make({ project_id, domain_id, image })),
  ]
}

/** Completes the domain: no worker with an old image accepts jobs there. */
const completeDomain = (
  { rollout_id, domain_ids }: Running,
  domain_id: DomainId,
  { project_id }: FleetOptions,
): Batch => [
  address(Rollout, rollout_id, CompleteRolloutDomain.make({ domain_id })),
  ...(domain_ids.at(-1) === domain_id
    ? [address(Fleet, project_id, EndRollout.make({ rollout_id }))]
    : []),
]

/** The outcome of a replacement; undefined while the new worker boots. */
const outcome = (
  view: FleetView,
  { rollout_id }: Running,
  pair: NonNullable<Running["replacement"]>,
  { project_id }: FleetOptions,
): Batch | undefined => {
  const [before, after] = [
    view.workers.get(pair.old_worker_id),
    view.workers.get(pair.new_worker_id),
  ]
  const is_draining = before?.state === "draining"
  if (after === undefined || after.state === "booting") return undefined
  if (after.state !== "dead") {
    return [
      address(Rollout, rollout_id, CompleteReplacement.make(pair)),
      ...(is_draining ? [address(Worker, pair.old_worker_id, RetireWorker.make({}))] : []),
    ]
  }
  const reason = reasonOf(after.reason ?? "The new worker failed to boot.")
  return [
    address(Rollout, rollout_id, FailReplacement.make({ ...pair, reason })),
    ...(is_draining ? [address(Worker, pair.old_worker_id, UndrainWorker.make({}))] : []),
    address(Fleet, project_id, EndRollout.make({ rollout_id })),
  ]
}
