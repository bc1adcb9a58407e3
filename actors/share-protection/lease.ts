/**
 * The lease of a target's repository: its readers and its writer.
 *
 * The repository has many readers and at most one writer, or a single exclusive job.
 *
 * Source: document 2 §7 svc.repository_locked; DECISIONS, document 2, engine.
 */
import { Effect, Struct } from "effect"
import { and, assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  LeaseAcquired,
  LeaseBroken,
  LeaseClosed,
  LeaseEvent,
  LeaseReleased,
} from "#events/share-protection/lease.ts"
import {
  type AcquireLease,
  LeaseCommand,
  lease_holds_max,
} from "#schemas/share-protection/lease.ts"
import {
  Conflict,
  NotFound,
  Rejection,
  RepositoryLocked,
} from "#schemas/share-protection/rejection.ts"

export type LeaseHold = Omit<typeof LeaseAcquired.Type, "type">

export interface LeaseContext {
  /** Oldest first. */
  readonly holds: ReadonlyArray<LeaseHold>
  /** The highest fence that was ever granted. */
  readonly fence: number
}

type Context = LeaseContext
type LeaseRequest = Pick<LeaseHold, "job_id" | "mode">

/** Whether a hold conflicts with the requested one. */
const conflicts = (hold: LeaseHold, { job_id, mode }: LeaseRequest) =>
  hold.job_id === job_id ||
  hold.mode === "exclusive" ||
  mode === "exclusive" ||
  (hold.mode === "write" && mode === "write")

const isHeld = ({ holds }: Context, { job_id, fence }: Pick<LeaseHold, "job_id" | "fence">) =>
  holds.some((hold) => hold.job_id === job_id && hold.fence === fence)

const chart = setup({
  types: { context: {} as Context, events: {} as LeaseEvent },
  guards: {
    is_compatible: ({ context, event }) =>
      event.type === "LeaseAcquired" && !context.holds.some((hold) => conflicts(hold, event)),
    has_room: ({ context }) => context.holds.length < lease_holds_max,
    is_next_fence: ({ context, event }) =>
      event.type === "LeaseAcquired" && event.fence === context.fence + 1,
    is_held: ({ context, event }) =>
      (event.type === "LeaseReleased" || event.type === "LeaseBroken") && isHeld(context, event),
    is_free: ({ context }) => context.holds.length === 0,
  },
  actions: {
    acquire: assign(({ context, event }) =>
      event.type === "LeaseAcquired"
        ? { holds: [...context.holds, Struct.omit(event, ["type"])], fence: event.fence }
        : {},
    ),
    release: assign(({ context, event }) =>
      "job_id" in event
        ? { holds: context.holds.filter(({ job_id }) => job_id !== event.job_id) }
        : {},
    ),
  },
})

const release = { guard: "is_held", actions: "release" } as const

export const machine = chart.createMachine({
  id: "share-protection.lease",
  context: { holds: [], fence: 0 },
  initial: "open",
  states: {
    open: {
      on: {
        LeaseAcquired: {
          guard: and(["is_compatible", "has_room", "is_next_fence"]),
          actions: "acquire",
        },
        LeaseReleased: release,
        LeaseBroken: release,
        LeaseClosed: { guard: "is_free", target: "closed" },
      },
    },
    closed: { type: "final" },
  },
})

const locked = ({ job_id, worker_id, mode, fence }: LeaseHold) =>
  new RepositoryLocked({
    detail: `Job ${job_id} on worker ${worker_id} holds the repository (${mode}, fence ${fence}).`,
  })

const refuseAcquire = ({ holds, fence }: Context, request: typeof AcquireLease.Type): Rejection => {
  const holder = holds.find((hold) => conflicts(hold, request))
  if (holder !== undefined) return locked(holder)
  if (holds.length >= lease_holds_max) {
    return new RepositoryLocked({
      detail: `The repository already has the maximum of ${lease_holds_max} holders.`,
    })
  }
  return new Conflict({
    detail: `Fence ${request.fence} is outdated: the next one is ${fence + 1}.`,
  })
}

const reject = (state: SnapshotFrom<typeof machine>, command: LeaseCommand): Rejection => {
  if (state.matches("closed")) return new NotFound({ detail: "No such target." })
  if (command.type === "AcquireLease") return refuseAcquire(state.context, command)
  const [holder] = state.context.holds
  // Releasing or breaking a hold that does not exist has no effect: only closing is rejected.
  if (holder === undefined) throw new Error(`${command.type} is never rejected`)
  return locked(holder)
}

export const Lease = decider({
  machine,
  version: 1,
  command: LeaseCommand,
  event: LeaseEvent,
  rejection: Rejection,
  propose: {
    AcquireLease: ({ type: _, ...hold }) => [LeaseAcquired.make(hold)],
    ReleaseLease: ({ type: _, ...hold }, context) =>
      isHeld(context, hold) ? [LeaseReleased.make(hold)] : [],
    BreakLease: ({ type: _, ...hold }, context) =>
      isHeld(context, hold) ? [LeaseBroken.make(hold)] : [],
    CloseLease: (_, _context, state) => (state.matches("closed") ? [] : [LeaseClosed.make({})]),
  },
  reject,
})

/** The lease after one of its commits. */
export const leaseAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Lease, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine.
    state: state.value as "open" | "closed",
    ...(state.context as LeaseContext),
  }))
