/**
 * A restore: pending → queued → running → available or error.
 *
 * Source: document 2 §2 Restore; DECISIONS, document 2, restore, backup status, retry.
 */
import { Effect, Struct } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  RestoreCompleted,
  RestoreEvent,
  RestoreFailed,
  RestoreQueued,
  RestoreRequested,
  RestoreRetried,
  RestoreStarted,
} from "#events/share-protection/restore.ts"
import type { ShareId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  InvalidStateTransition,
  NotFound,
  Rejection,
} from "#schemas/share-protection/rejection.ts"
import {
  type RequestRestore,
  RestoreCommand,
  type RestoreStatus,
} from "#schemas/share-protection/restore.ts"

export interface RestoreContext extends Omit<typeof RequestRestore.Type, "type"> {
  /** The new share; null in place, and until completion. */
  readonly new_share_id: ShareId | null
  /** Why it is in error. */
  readonly reason: string | null
}

type Context = RestoreContext

const chart = setup({
  types: { context: {} as Context, events: {} as RestoreEvent },
  actions: {
    fail: assign(({ event }) => ("reason" in event ? { reason: event.reason } : {})),
  },
})

const failed = { target: "error", actions: "fail" } as const

export const machine = chart.createMachine({
  id: "share-protection.restore",
  // The context is empty until the restore exists, and is not read before.
  context: {} as Context,
  initial: "absent",
  states: {
    absent: {
      on: {
        RestoreRequested: {
          target: "pending",
          actions: assign(({ event }) => ({
            ...Struct.omit(event, ["type"]),
            new_share_id: null,
            reason: null,
          })),
        },
      },
    },
    pending: { on: { RestoreQueued: "queued", RestoreStarted: "running", RestoreFailed: failed } },
    queued: { on: { RestoreStarted: "running", RestoreFailed: failed } },
    running: {
      on: {
        RestoreCompleted: {
          target: "available",
          actions: assign(({ event: { new_share_id } }) => ({ new_share_id })),
        },
        RestoreFailed: failed,
      },
    },
    available: { type: "final" },
    error: { on: { RestoreRetried: { target: "queued", actions: assign({ reason: null }) } } },
  },
})

const reject = ({ value }: SnapshotFrom<typeof machine>, { type }: RestoreCommand): Rejection => {
  if (type === "RequestRestore") {
    return new Conflict({ detail: "A restore with this id already exists." })
  }
  if (value === "absent") return new NotFound({ detail: "No such restore." })
  const detail = `The restore is ${value} and rejects ${type}.`
  // Users send only retries, so any other rejection is a bug of the service.
  return type === "RetryRestore" ? new Conflict({ detail }) : new InvalidStateTransition({ detail })
}

export const Restore = decider({
  machine,
  version: 2,
  command: RestoreCommand,
  event: RestoreEvent,
  rejection: Rejection,
  propose: {
    RequestRestore: (command) => [RestoreRequested.make(Struct.omit(command, ["type"]))],
    QueueRestore: (_, _context, state) => (state.matches("queued") ? [] : [RestoreQueued.make({})]),
    StartRestore: () => [RestoreStarted.make({})],
    CompleteRestore: (command) => [RestoreCompleted.make(Struct.omit(command, ["type"]))],
    FailRestore: ({ reason }) => [RestoreFailed.make({ reason })],
    RetryRestore: () => [RestoreRetried.make({})],
  },
  reject,
})

/** The restore after one of its commits. */
export const restoreAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Restore, recorded), ({ context, value }) => ({
    // The decider's state is a snapshot of this file's machine.
    ...(context as Context),
    state: value as RestoreStatus,
  }))
