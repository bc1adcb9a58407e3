/**
 * A job: queued → each step of a worker in order → available or error.
 *
 * Every report of a worker carries the fence of its hold; reports with another fence are rejected.
 * Only a retry leaves error; available is final.
 *
 * Source: document 2 §3 Job; DECISIONS, document 2, cancel, retry, automatic retry.
 */
import { Effect, Struct } from "effect"
import { and, assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  JobAdvanced,
  JobAssigned,
  JobCancelled,
  JobCompleted,
  JobEvent,
  JobFailed,
  JobQueued,
  JobRecast,
  JobRetried,
  JobStarted,
  JobUnassigned,
} from "#events/share-protection/job.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import {
  type AssignJob,
  JobCommand,
  type JobState,
  type JobStep,
  type RejectJob,
} from "#schemas/share-protection/job.ts"
import {
  Conflict,
  InvalidStateTransition,
  NotFound,
  Rejection,
} from "#schemas/share-protection/rejection.ts"

type Fields<Message extends { readonly type: string }> = Omit<Message, "type">

export interface JobContext extends Fields<typeof JobQueued.Type> {
  /** The current or last worker; null while unassigned. */
  readonly worker_id: WorkerId | null
  readonly fence: number | null
  /** Whether that worker has started it. */
  readonly started: boolean
  /** From 1. */
  readonly attempt: number
  /** Number of automatic retries. */
  readonly retries: number
  /** Number of recasts of this attempt. */
  readonly recasts: number
  readonly error: Fields<typeof RejectJob.Type> | null
  readonly cancelled: boolean
  /** Whether any attempt may have written a snapshot; a later attempt cannot disprove it. */
  readonly may_have_written: boolean
}

type Context = JobContext

/** Never retried automatically, because its engine may have written a snapshot. */
const cancelled = {
  code: "svc.conflict",
  detail: "cancelled",
  category: "tenant_action_required",
  wrote_nothing: false,
} as const

const unassigned = { worker_id: null, fence: null, started: false, error: null, cancelled: false }

const chart = setup({
  types: { context: {} as Context, events: {} as JobEvent },
  guards: {
    is_unassigned: ({ context }) => context.worker_id === null,
    is_from_holder: ({ context, event }) =>
      "fence" in event && event.worker_id === context.worker_id && event.fence === context.fence,
    is_next: ({ event }, { step }: { step: JobStep }) =>
      event.type === "JobAdvanced" && event.to === step,
    may_retry: ({ context: { cancelled, may_have_written, retries, max_retries }, event }) =>
      event.type === "JobRetried" &&
      (!event.automatic || (!cancelled && !may_have_written && retries < max_retries)),
  },
  actions: {
    assign: assign(({ event }) =>
      event.type === "JobAssigned" ? { worker_id: event.worker_id, fence: event.fence } : {},
    ),
    unassign: assign({ worker_id: null, fence: null }),
    start: assign({ started: true }),
    fail: assign(({ context, event }) =>
      event.type === "JobFailed"
        ? {
            error: Struct.omit(event, ["type", "worker_id", "fence"]),
            may_have_written: context.may_have_written || !event.wrote_nothing,
          }
        : {},
    ),
    cancel: assign({ error: cancelled, cancelled: true }),
    doubt: assign({ may_have_written: true }),
    retry: assign(({ context, event }) =>
      event.type === "JobRetried"
        ? {
            ...unassigned,
            attempt: event.attempt,
            recasts: 0,
            retries: context.retries + Number(event.automatic),
          }
        : {},
    ),
  },
})

const end = {
  JobFailed: { guard: "is_from_holder", target: "error", actions: "fail" },
  JobCancelled: { target: "error", actions: "cancel" },
} as const

/**
 * In these steps the engine may have written, so after a cancellation it is unknown whether it did.
 */
const doubtful_end = {
  ...end,
  JobCancelled: { target: "error", actions: ["cancel", "doubt"] },
} as const

/** A step of the worker that is followed by `next`. */
const before = (next: JobStep, ends: typeof end | typeof doubtful_end = end) =>
  ({
    on: {
      ...ends,
      JobAdvanced: {
        guard: and(["is_from_holder", { type: "is_next", params: { step: next } }]),
        target: next,
      },
    },
  }) as const

export const machine = chart.createMachine({
  id: "share-protection.job",
  // JobQueued supplies the other fields.
  context: {
    ...({} as Fields<typeof JobQueued.Type>),
    ...unassigned,
    attempt: 1,
    retries: 0,
    recasts: 0,
    may_have_written: false,
  },
  initial: "absent",
  states: {
    absent: {
      on: {
        JobQueued: {
          target: "queued",
          actions: assign(({ event }) => Struct.omit(event, ["type"])),
        },
      },
    },
    queued: {
      on: {
        ...end,
        JobFailed: {
          ...end.JobFailed,
          guard: and(["is_unassigned", "is_from_holder"]),
        },
        JobAssigned: { guard: "is_unassigned", actions: "assign" },
        JobUnassigned: { guard: "is_from_holder", actions: "unassign" },
        JobRecast: { actions: assign(({ event }) => ({ recasts: event.count })) },
        JobStarted: { guard: "is_from_holder", target: "provisioning_network", actions: "start" },
      },
    },
    provisioning_network: before("provisioning_source"),
    provisioning_source: before("connecting_repository"),
    connecting_repository: before("transferring"),
    transferring: before("finalizing", doubtful_end),
    finalizing: before("releasing", doubtful_end),
    releasing: {
      on: { ...doubtful_end, JobCompleted: { guard: "is_from_holder", target: "available" } },
    },
    available: { type: "final" },
    error: { on: { JobRetried: { guard: "may_retry", target: "queued", actions: "retry" } } },
  },
})

type State = SnapshotFrom<typeof machine>

const hasEnded = (state: State) => state.matches("available") || state.matches("error")

type Report = Exclude<Extract<JobCommand, { readonly fence: number }>, typeof AssignJob.Type>

const isHeldBy = ({ worker_id, fence }: Context, report: Report) =>
  report.worker_id === worker_id && report.fence === fence

/**
 * Rejects a report of a worker. If the worker holds the job but the report is out of order, another
 * run of the same order exists: that of an earlier agent with the same id.
 */
const refuseReport = (state: State, command: Report): Rejection => {
  const { worker_id, fence, type } = command
  if (!isHeldBy(state.context, command)) {
    return new Conflict({
      detail: `The job is not assigned to worker ${worker_id} with fence ${fence}.`,
    })
  }
  const is_move = type === "AdvanceJob" || type === "CompleteJob" || type === "StartJob"
  if (!is_move || hasEnded(state)) {
    return new Conflict({ detail: `A job that is ${state.value} rejects ${type}.` })
  }
  if (type === "StartJob") {
    return new InvalidStateTransition({ detail: "Another run has already started this job." })
  }
  const to = type === "AdvanceJob" ? command.to : "available"
  return new InvalidStateTransition({ detail: `A job cannot go from ${state.value} to ${to}.` })
}

const reject = (state: State, command: JobCommand): Rejection => {
  if (state.matches("absent")) return new NotFound({ detail: "No such job." })
  if (command.type === "QueueJob") return new Conflict({ detail: "The job already exists." })
  if (command.type === "AssignJob" && state.matches("queued")) {
    return new Conflict({
      detail: `The job is already offered to worker ${state.context.worker_id}.`,
    })
  }
  if (command.type === "RetryJob" && state.matches("error")) {
    return new Conflict({ detail: "The job is not retried automatically." })
  }
  if (command.type === "RetryJob" || command.type === "CancelJob") {
    const [done, which] =
      command.type === "RetryJob" ? ["retried", "is in error"] : ["cancelled", "has not ended"]
    const is = state.matches("error") ? "in error" : state.value
    const detail = `A job that is ${is} cannot be ${done}: only one that ${which} can.`
    return new Conflict({ detail })
  }
  if (command.type !== "AssignJob" && "fence" in command) return refuseReport(state, command)
  return new Conflict({ detail: `A job that is ${state.value} rejects ${command.type}.` })
}

export const Job = decider({
  machine,
  version: 1,
  command: JobCommand,
  event: JobEvent,
  rejection: Rejection,
  propose: {
    QueueJob: ({ type: _, ...job }) => [JobQueued.make(job)],
    AssignJob: ({ worker_id, fence }) => [JobAssigned.make({ worker_id, fence })],
    UnassignJob: (command, context, state) => {
      const { worker_id, fence } = command
      const unassigned = hasEnded(state) && !context.started && isHeldBy(context, command)
      return unassigned ? [] : [JobUnassigned.make({ worker_id, fence })]
    },
    StartJob: ({ worker_id, fence }) => [JobStarted.make({ worker_id, fence })],
    AdvanceJob: (command, context, state) => {
      const { worker_id, fence, to } = command
      if (state.matches(to) && isHeldBy(context, command)) return []
      return [JobAdvanced.make({ worker_id, fence, to })]
    },
    CompleteJob: ({ worker_id, fence }) => [JobCompleted.make({ worker_id, fence })],
    FailJob: ({ type: _, ...failure }) => [JobFailed.make(failure)],
    RejectJob: ({ type: _, ...failure }) => [
      JobFailed.make({ ...failure, worker_id: null, fence: null }),
    ],
    CancelJob: () => [JobCancelled.make({})],
    RetryJob: ({ automatic }, { attempt }) => [
      JobRetried.make({ attempt: attempt + 1, automatic }),
    ],
    RecastJob: (_, { recasts }, state) =>
      state.matches("absent") || state.matches("queued")
        ? [JobRecast.make({ count: recasts + 1 })]
        : [],
  },
  reject,
})

/** The job after one of its commits. */
export const jobAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Job, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine, and a commit's job is not absent.
    state: state.value as JobState,
    ...(state.context as JobContext),
  }))
