/**
 * The fleet manager: detects silent workers, boots new workers where too few run, and removes
 * retired ones.
 *
 * The fleet aggregate decides how often a worker may boot and records each boot, so that another
 * conductor can take over.
 *
 * Source: document 2 §3 Worker, §8 conductor.*; DECISIONS, document 2, worker, domains.
 */
import { Clock, DateTime, Effect } from "effect"
import { address, Unavailable } from "#actors/commands.ts"
import { type Batch, type Caused, type Due, mergeDue, type Process } from "#actors/process.ts"
import type { KnownWorker } from "#actors/share-protection/dispatch/view.ts"
import { growth } from "#actors/share-protection/fleet/growth.ts"
import type { FleetOptions } from "#actors/share-protection/fleet/options.ts"
import { emptyFleetView, type FleetView, foldFleet } from "#actors/share-protection/fleet/view.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import type { Compute } from "#actors/share-protection/ports/compute.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { rolloutSteps } from "#actors/share-protection/processes/rollout-steps.ts"
import { silentWorkers } from "#actors/share-protection/processes/worker-silence.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { RecordBootFailure } from "#schemas/share-protection/fleet.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { reasonOf } from "#schemas/share-protection/text.ts"
import { ConfirmRetirement, FailWorkerBoot } from "#schemas/share-protection/worker.ts"

/** Access to machines; undefined if the deployment has none. */
export type Machines = Compute["Service"] | undefined

/** For a day, the manager keeps trying to destroy a dead worker's machine. */
const dead_cleanup_ms = 86_400_000

/** Requests machines for booting workers, and fails boots that exceed the grace period. */
const boots = (
  view: FleetView,
  machines: Compute["Service"],
  options: FleetOptions,
  now: number,
): Due => {
  const items: Array<Caused> = []
  let next = Infinity
  for (const [worker_id, worker] of view.workers) {
    if (worker.state !== "booting") continue
    const deadline = worker.since + options.worker_boot_grace_seconds * 1000
    if (deadline <= now) {
      const reason = `It did not become ready within ${options.worker_boot_grace_seconds} s.`
      const batch = failedBoot(view, options, worker_id, reason, now)
      items.push({ command_id: `boot-failed-${worker_id}`, batch })
      continue
    }
    next = Math.min(next, deadline)
    items.push(boot(view, machines, options, worker_id, worker))
  }
  return { now: items, next }
}

const boot = (
  view: FleetView,
  machines: Compute["Service"],
  options: FleetOptions,
  worker_id: WorkerId,
  { image, project_id, domain_id, position }: KnownWorker,
): Caused => ({
  command_id: `machine-${worker_id}`,
  cause: String(position),
  batch: machines
    .boot({
      worker_id,
      image: image ?? options.worker_boot_image,
      project_id: project_id ?? options.project_id,
      domain_id,
    })
    .pipe(
      Effect.as<Batch>([]),
      Effect.catch((refusal) =>
        refusal.code === "svc.backend_unavailable"
          ? Effect.fail(new Unavailable({ detail: refusal.detail }))
          : Effect.map(Clock.currentTimeMillis, (now) =>
              failedBoot(view, options, worker_id, refusal.detail, now),
            ),
      ),
    ),
})

/** The fleet counts the failure, except in a rollout, which it halts. */
const failedBoot = (
  { rollout }: FleetView,
  { project_id }: FleetOptions,
  worker_id: WorkerId,
  reason: string,
  now: number,
): Batch => {
  const failed = address(Worker, worker_id, FailWorkerBoot.make({ reason: reasonOf(reason) }))
  if (rollout?.replacement?.new_worker_id === worker_id) return [failed]
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  const failure = RecordBootFailure.make({ worker_id, at, reason: reasonOf(reason) })
  return [failed, address(Fleet, project_id, failure)]
}

/** Destroys the machines of retiring and dead workers. */
const removals = (view: FleetView, machines: Machines, now: number): ReadonlyArray<Caused> => {
  const removed: Array<Caused> = []
  for (const [worker_id, { state, running_jobs, image, position, since }] of view.workers) {
    const is_retiring = state === "retiring" && running_jobs.length === 0
    const is_cleaned_up = state === "dead" && image !== null && since > now - dead_cleanup_ms
    if (!is_retiring && !is_cleaned_up) continue
    const confirm = is_retiring ? [address(Worker, worker_id, ConfirmRetirement.make({}))] : []
    // The manager destroys only machines that it booted.
    const destroyed =
      image === null || machines === undefined ? Effect.void : machines.destroy(worker_id)
    removed.push({
      command_id: `gone-${worker_id}-${state}`,
      cause: String(position),
      batch: destroyed.pipe(
        Effect.as(confirm),
        Effect.mapError(({ detail }) => new Unavailable({ detail })),
      ),
    })
  }
  return removed
}

/** Runs on a single conductor; boots no workers without machines. */
export const fleetManager = (options: FleetOptions, machines: Machines) =>
  Effect.map(
    LiveWorkers,
    (live): Process => ({
      name: "share-protection-fleet",
      part: "share-protection",
      from: "lasts",
      start: Effect.gen(function* () {
        const log = yield* Log
        const view = emptyFleetView()
        const detectSilence = silentWorkers(live, options.worker_heartbeat_deadline_seconds * 1000)
        return {
          fold: (recorded) => foldFleet(log, view, recorded),
          due: (now) => {
            const silent = detectSilence(view, now)
            const removing = { now: removals(view, machines, now) }
            if (machines === undefined) return mergeDue(silent, removing)
            return mergeDue(
              silent,
              removing,
              boots(view, machines, options, now),
              rolloutSteps(view, options, now),
              growth(view, options, now),
            )
          },
        }
      }),
    }),
  )
