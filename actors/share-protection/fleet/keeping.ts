/**
 * The fleet's keeper: notices workers that fell silent, boots new ones where they are too few, and
 * lets those go that are retired.
 *
 * How often a worker may boot is the fleet aggregate's to say; the keeper asks when it may, and a
 * keeper that takes over finds there what the one before it had done.
 *
 * Source: document 2 §3 Worker, §8 conductor.*; DECISIONS, document 2, worker, domains.
 */
import { Clock, DateTime, Effect } from "effect"
import { address, Unavailable } from "#actors/commands.ts"
import { type Batch, type Caused, type Due, joined, type Process } from "#actors/process.ts"
import type { KnownWorker } from "#actors/share-protection/dispatch/view.ts"
import { growth } from "#actors/share-protection/fleet/growth.ts"
import type { FleetOptions } from "#actors/share-protection/fleet/options.ts"
import { emptyFleetView, type FleetView, foldFleet } from "#actors/share-protection/fleet/view.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import type { Compute } from "#actors/share-protection/ports/compute.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { rolloutSteps } from "#actors/share-protection/processes/rollout-course.ts"
import { silentWorkers } from "#actors/share-protection/processes/worker-silence.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Log } from "#events/log.ts"
import { RecordBootFailure } from "#schemas/share-protection/fleet.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { reasonOf } from "#schemas/share-protection/text.ts"
import { ConfirmRetirement, FailWorkerBoot } from "#schemas/share-protection/worker.ts"

/** Whether machines can be had, and how. */
export type Machines = Compute["Service"] | undefined

/** For a day what is left of a dead worker's machine is looked after. */
const burial_ms = 86_400_000

/** Machines of workers that boot: asked for, and given up when their time is over. */
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
      const reason = `It was not up within ${options.worker_boot_grace_seconds} s.`
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

/** The fleet counts it, unless it was a rollout's, which halts by it. */
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

/** Workers that go, and what is left of those that died. */
const departures = (view: FleetView, machines: Machines, now: number): ReadonlyArray<Caused> => {
  const going: Array<Caused> = []
  for (const [worker_id, { state, running_jobs, image, position, since }] of view.workers) {
    const is_retiring = state === "retiring" && running_jobs.length === 0
    const is_buried = state === "dead" && image !== null && since > now - burial_ms
    if (!is_retiring && !is_buried) continue
    const confirm = is_retiring ? [address(Worker, worker_id, ConfirmRetirement.make({}))] : []
    // A machine that we did not boot is not ours to end.
    const destroyed =
      image === null || machines === undefined ? Effect.void : machines.destroy(worker_id)
    going.push({
      command_id: `gone-${worker_id}-${state}`,
      cause: String(position),
      batch: destroyed.pipe(
        Effect.as(confirm),
        Effect.mapError(({ detail }) => new Unavailable({ detail })),
      ),
    })
  }
  return going
}

/** One conductor of all runs it; without machines it boots none. */
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
        const silences = silentWorkers(live, options.worker_heartbeat_deadline_seconds * 1000)
        return {
          fold: (recorded) => foldFleet(log, view, recorded),
          due: (now) => {
            const silent = silences(view, now)
            const departing = { now: departures(view, machines, now) }
            if (machines === undefined) return joined(silent, departing)
            return joined(
              silent,
              departing,
              boots(view, machines, options, now),
              rolloutSteps(view, options, now),
              growth(view, options, now),
            )
          },
        }
      }),
    }),
  )
