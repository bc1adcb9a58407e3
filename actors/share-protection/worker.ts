/**
 * A worker: booting → ready ⇄ draining → retiring → retired; any of them → dead.
 *
 * A slot records the fence of its job's hold, so a late report about an earlier hold of the same
 * job does not free it. A dead worker keeps its slots until recovery releases them.
 *
 * Source: document 2 §3 Worker; DECISIONS, document 2, worker.
 */
import { Effect, Equal, Struct } from "effect"
import { and, assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  WorkerBootFailed,
  WorkerBootStarted,
  WorkerDied,
  WorkerDrainStarted,
  WorkerEvent,
  WorkerJobAssigned,
  WorkerJobReleased,
  WorkerRegistered,
  WorkerRetired,
  WorkerRetirementStarted,
  WorkerUndrained,
} from "#events/share-protection/worker.ts"
import type { DomainId, JobId, ProjectId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  NotFound,
  Rejection,
  WorkerUnavailable,
} from "#schemas/share-protection/rejection.ts"
import { WorkerCommand, type WorkerState } from "#schemas/share-protection/worker.ts"

export interface Slot {
  readonly job_id: JobId
  readonly fence: number
}

export interface WorkerContext {
  readonly project_id: ProjectId | null
  readonly domain_id: DomainId | null
  /** The image it was booted from; null if the service did not boot it. */
  readonly image: string | null
  /** The following fields come from its agent; null before it registers. */
  readonly hostname: string | null
  readonly image_version: string | null
  readonly engine_version: string | null
  readonly capacity_slots: number | null
  /** Occupied slots, oldest first. */
  readonly running_jobs: ReadonlyArray<Slot>
  /** Why it is dead. */
  readonly reason: string | null
}

type Context = WorkerContext

const runs = ({ running_jobs }: Context, { job_id, fence }: Slot) =>
  running_jobs.some((slot) => slot.job_id === job_id && slot.fence === fence)

const chart = setup({
  types: { context: {} as Context, events: {} as WorkerEvent },
  guards: {
    has_free_slot: ({ context }) => context.running_jobs.length < (context.capacity_slots ?? 0),
    is_new_job: ({ context, event }) =>
      event.type === "WorkerJobAssigned" &&
      context.running_jobs.every(({ job_id }) => job_id !== event.job_id),
    runs: ({ context, event }) => event.type === "WorkerJobReleased" && runs(context, event),
    is_idle: ({ context }) => context.running_jobs.length === 0,
  },
  actions: {
    learn: assign(({ event }) =>
      event.type === "WorkerBootStarted" || event.type === "WorkerRegistered"
        ? Struct.omit(event, ["type"])
        : {},
    ),
    assign_job: assign(({ context, event }) =>
      event.type === "WorkerJobAssigned"
        ? { running_jobs: [...context.running_jobs, Struct.omit(event, ["type"])] }
        : {},
    ),
    release_job: assign(({ context, event }) =>
      event.type === "WorkerJobReleased"
        ? { running_jobs: context.running_jobs.filter(({ job_id }) => job_id !== event.job_id) }
        : {},
    ),
    die: assign(({ event }) => ("reason" in event ? { reason: event.reason } : {})),
  },
})

const release = { WorkerJobReleased: { guard: "runs", actions: "release_job" } } as const
const dies = { WorkerDied: { target: "dead", actions: "die" } } as const
const registers = { WorkerRegistered: { target: "ready", actions: "learn" } } as const

export const machine = chart.createMachine({
  id: "share-protection.worker",
  context: {
    project_id: null,
    domain_id: null,
    image: null,
    hostname: null,
    image_version: null,
    engine_version: null,
    capacity_slots: null,
    running_jobs: [],
    reason: null,
  },
  initial: "absent",
  states: {
    absent: { on: { ...registers, WorkerBootStarted: { target: "booting", actions: "learn" } } },
    booting: {
      on: { ...registers, ...dies, WorkerBootFailed: { target: "dead", actions: "die" } },
    },
    ready: {
      on: {
        ...dies,
        ...release,
        WorkerJobAssigned: {
          guard: and(["has_free_slot", "is_new_job"]),
          actions: "assign_job",
        },
        WorkerDrainStarted: "draining",
      },
    },
    draining: {
      on: {
        ...dies,
        ...release,
        WorkerUndrained: "ready",
        WorkerRetirementStarted: "retiring",
      },
    },
    retiring: {
      on: { ...dies, ...release, WorkerRetired: { guard: "is_idle", target: "retired" } },
    },
    retired: { type: "final" },
    dead: { on: release },
  },
})

type State = SnapshotFrom<typeof machine>

const is_gone = (state: State) => state.matches("dead") || state.matches("retired")

/** Whether a registration of a live worker changes nothing. */
const isKnown = (
  { type: _, ...registration }: Extract<WorkerCommand, { type: "RegisterWorker" }>,
  context: Context,
  state: State,
) =>
  !state.matches("absent") &&
  !is_gone(state) &&
  Equal.equals(Struct.pick(context, Struct.keys(registration)), registration)

/** Error texts for commands of operators. */
const refusals: Partial<Readonly<Record<WorkerCommand["type"], string>>> = {
  DrainWorker: "cannot be drained: only a ready worker can",
  RetireWorker: "cannot be retired: only a draining worker can, so drain it first",
}

const reject = (state: State, command: WorkerCommand): Rejection => {
  if (state.matches("absent")) return new NotFound({ detail: "No such worker." })
  const { capacity_slots, running_jobs } = state.context
  if (command.type === "AssignWorkerJob" && state.matches("ready")) {
    if (running_jobs.some(({ job_id }) => job_id === command.job_id)) {
      return new Conflict({ detail: "The worker already has this job." })
    }
    return new WorkerUnavailable({ detail: `All ${capacity_slots} slots of the worker are busy.` })
  }
  if (command.type === "ConfirmRetirement" && state.matches("retiring")) {
    return new Conflict({ detail: `The worker is running ${running_jobs.length} jobs.` })
  }
  const refusal = refusals[command.type] ?? `rejects ${command.type}`
  return new Conflict({ detail: `The worker is ${state.value} and ${refusal}.` })
}

export const Worker = decider({
  machine,
  version: 1,
  command: WorkerCommand,
  event: WorkerEvent,
  rejection: Rejection,
  propose: {
    BootWorker: ({ type: _, ...boot }) => [WorkerBootStarted.make(boot)],
    FailWorkerBoot: ({ reason }) => [WorkerBootFailed.make({ reason })],
    RegisterWorker: (command, context, state) => {
      if (isKnown(command, context, state)) return []
      return [WorkerRegistered.make(Struct.omit(command, ["type"]))]
    },
    AssignWorkerJob: ({ job_id, fence }) => [WorkerJobAssigned.make({ job_id, fence })],
    ReleaseWorkerJob: ({ job_id, fence }, context, state) => {
      if (!state.matches("absent") && !runs(context, { job_id, fence })) return []
      return [WorkerJobReleased.make({ job_id, fence })]
    },
    DrainWorker: () => [WorkerDrainStarted.make({})],
    UndrainWorker: () => [WorkerUndrained.make({})],
    RetireWorker: () => [WorkerRetirementStarted.make({})],
    ConfirmRetirement: () => [WorkerRetired.make({})],
    MarkWorkerDead: ({ reason }, _, state) => (is_gone(state) ? [] : [WorkerDied.make({ reason })]),
  },
  reject,
})

/** The worker after one of its commits. */
export const workerAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Worker, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine, and a commit's is not absent.
    state: state.value as WorkerState,
    ...(state.context as WorkerContext),
  }))
