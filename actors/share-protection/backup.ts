/**
 * A backup: creating → queued → running → available or error; available → expired, and expired →
 * undeleting → available.
 *
 * Source: document 2 §2 Backup, §3 Backup; DECISIONS, document 2, backup status, DELETE backup.
 */
import { Effect, Schema, Stream, Struct } from "effect"
import { and, assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  BackupAdopted,
  BackupCompleted,
  BackupDeleted,
  BackupEvent,
  BackupExpired,
  BackupFailed,
  BackupLost,
  BackupQueued,
  BackupRequested,
  BackupRestoreFinished,
  BackupRestoreStarted,
  BackupRestoreTested,
  BackupRestoreTestFailed,
  BackupRetried,
  BackupStarted,
  BackupUndeleted,
  BackupUndeleteFailed,
  BackupUndeleteStarted,
} from "#events/share-protection/backup.ts"
import {
  BackupCommand,
  type BackupStatus,
  backup_restores_max,
  type DeleteBackup,
  type RequestBackup,
  type StartBackupRestore,
  type Unread,
} from "#schemas/share-protection/backup.ts"
import type { JobId, RestoreId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  InvalidStateTransition,
  NotFound,
  Rejection,
} from "#schemas/share-protection/rejection.ts"

type Request = Omit<typeof RequestBackup.Type, "type">

export interface BackupContext extends Omit<Request, "job_id"> {
  /** Null for a backup adopted from the repository. */
  readonly job_id: JobId | null
  readonly engine_snapshot_id: string | null
  /** RFC 3339: when its snapshot was taken. */
  readonly taken_at: string | null
  /** RFC 3339: end of the lock on its objects; null if no lock is known. */
  readonly protected_until: string | null
  /** Whether its tenant undeleted it, which exempts it from retention. */
  readonly kept: boolean
  /** Restores that are reading it. */
  readonly restores: ReadonlyArray<RestoreId>
  /** Why it is in error. */
  readonly reason: string | null
}

type Context = BackupContext

/** Context of a backup before its engine ran. */
const without_snapshot = {
  engine_snapshot_id: null,
  taken_at: null,
  protected_until: null,
  kept: false,
  restores: [],
  reason: null,
}

const chart = setup({
  types: { context: {} as Context, events: {} as BackupEvent },
  guards: {
    is_not_restored: ({ context }) => context.restores.length === 0,
    is_restored_by: ({ context, event }) =>
      "restore_id" in event && context.restores.includes(event.restore_id),
    can_be_restored_by: ({ context: { restores }, event }) =>
      "restore_id" in event &&
      !restores.includes(event.restore_id) &&
      restores.length < backup_restores_max,
    is_not_locked: ({ context: { protected_until }, event }) =>
      protected_until === null || ("at" in event && event.at >= protected_until),
    is_known_as_expired: ({ event }) => event.type === "BackupDeleted" && event.expired,
    is_known_as_not_expired: ({ event }) => event.type === "BackupDeleted" && !event.expired,
  },
  actions: {
    /** Leaves the context unchanged: the event is for other readers. */
    unchanged: assign({}),
    fail: assign(({ event }) => ("reason" in event ? { reason: event.reason } : {})),
    finish_restore: assign(({ context: { restores }, event }) =>
      "restore_id" in event ? { restores: restores.filter((id) => id !== event.restore_id) } : {},
    ),
  },
})

const failed = { target: "error", actions: "fail" } as const
const restored = { guard: "is_restored_by", actions: "finish_restore" } as const

export const machine = chart.createMachine({
  id: "share-protection.backup",
  // The context is empty until the backup exists, and is not read before.
  context: {} as Context,
  initial: "absent",
  states: {
    absent: {
      on: {
        BackupRequested: {
          target: "creating",
          actions: assign(({ event }) => ({
            ...without_snapshot,
            ...Struct.omit(event, ["type"]),
          })),
        },
        BackupAdopted: {
          target: "available",
          actions: assign(({ event }) => ({
            ...without_snapshot,
            ...Struct.pick(event, ["project_id", "share_id", "target_id", "policy_id"]),
            ...Struct.pick(event, ["engine_snapshot_id", "taken_at", "protected_until"]),
            job_id: null,
            crash_consistent_wanted: null,
          })),
        },
      },
    },
    creating: { on: { BackupQueued: "queued", BackupStarted: "running", BackupFailed: failed } },
    queued: { on: { BackupStarted: "running", BackupFailed: failed } },
    running: {
      on: {
        BackupCompleted: {
          target: "available",
          actions: assign(({ event }) =>
            Struct.pick(event, ["engine_snapshot_id", "taken_at", "protected_until"]),
          ),
        },
        BackupFailed: failed,
      },
    },
    available: {
      on: {
        BackupRestoreStarted: {
          guard: "can_be_restored_by",
          actions: assign(({ context, event }) => ({
            restores: [...context.restores, event.restore_id],
          })),
        },
        BackupRestoreFinished: restored,
        BackupRestoreTested: { actions: "unchanged" },
        BackupRestoreTestFailed: { actions: "unchanged" },
        BackupExpired: { target: "expired", guard: "is_not_restored" },
        BackupDeleted: {
          target: "deleted",
          guard: and(["is_known_as_not_expired", "is_not_restored", "is_not_locked"]),
        },
        BackupLost: {
          target: "error",
          actions: [
            assign({
              engine_snapshot_id: null,
              taken_at: null,
              protected_until: null,
              kept: false,
            }),
            "fail",
          ],
        },
      },
    },
    error: {
      on: {
        BackupRestoreFinished: restored,
        BackupRetried: {
          target: "queued",
          guard: "is_not_restored",
          actions: assign({ reason: null }),
        },
        BackupDeleted: {
          target: "deleted",
          guard: and(["is_known_as_not_expired", "is_not_restored"]),
        },
      },
    },
    expired: {
      on: {
        BackupDeleted: { target: "deleted", guard: "is_known_as_expired" },
        BackupUndeleteStarted: "undeleting",
      },
    },
    undeleting: {
      on: {
        BackupUndeleted: {
          target: "available",
          actions: assign(({ event: { protected_until } }) => ({ protected_until, kept: true })),
        },
        BackupUndeleteFailed: "expired",
      },
    },
    deleted: { type: "final" },
  },
})

type State = SnapshotFrom<typeof machine>

const exists = (state: State) => !state.matches("absent") && !state.matches("deleted")

/** Error texts for users' commands; errors of the service's own commands use the command's name. */
const refusals: Partial<Readonly<Record<BackupCommand["type"], string>>> = {
  DeleteBackup: "be deleted: cancel its job, or wait until it ends",
  StartBackupRestore: "be restored: only one that is available can",
  StartBackupUndelete: "be undeleted: only one that is expired can",
  RetryBackup: "be retried: only one that is in error can",
}

const refusalText = ({ value }: State, { type }: BackupCommand) => {
  const is = value === "error" ? "in error" : value
  const refusal = refusals[type]
  const clause = refusal === undefined ? `rejects ${type}` : `cannot ${refusal}`
  return `A backup that is ${is} ${clause}.`
}

const reject = (state: State, command: BackupCommand): Rejection => {
  const refused = refusalText(state, command)
  if (command.type === "RequestBackup" || command.type === "AdoptBackup") {
    return new Conflict({ detail: "A backup with this id already exists." })
  }
  if (!exists(state)) return new NotFound({ detail: "No such backup." })
  switch (command.type) {
    // Only the service itself sends these, so a rejection is a bug.
    case "QueueBackup":
    case "StartBackup":
    case "CompleteBackup":
    case "FailBackup":
    case "CompleteBackupUndelete":
    case "FailBackupUndelete":
    case "RecordRestoreTest":
    case "FailRestoreTest":
      return new InvalidStateTransition({ detail: refused })
    case "DeleteBackup":
      return new Conflict({ detail: deleteRefusal(state, command) ?? refused })
    case "StartBackupRestore":
      return new Conflict({
        detail: state.matches("available") ? restoreRefusal(state, command) : refused,
      })
    case "ExpireBackup":
    case "RetryBackup":
    case "LoseBackup":
    case "FinishBackupRestore":
    case "StartBackupUndelete":
      return new Conflict({ detail: readerText(state) ?? refused })
  }
}

const readerText = ({ context: { restores } }: State) =>
  restores[0] && `Restore ${restores[0]} is reading the backup.`

const deleteRefusal = (state: State, { expired }: typeof DeleteBackup.Type) => {
  if (expired !== state.matches("expired")) return `The backup is now ${state.value}.`
  const { protected_until } = state.context
  const locked = protected_until && `Its objects are locked: protected_until ${protected_until}.`
  return readerText(state) ?? locked
}

const restoreRefusal = (
  { context: { restores } }: State,
  { restore_id }: typeof StartBackupRestore.Type,
) =>
  restores.includes(restore_id)
    ? `Restore ${restore_id} is already reading the backup.`
    : `The backup already has the maximum of ${backup_restores_max} restores.`

/** The share and the time of a tested backup; empty if the backup is no longer available. */
const testedOf = ({ share_id, taken_at }: Context, state: State) =>
  state.matches("available") && taken_at !== null ? [{ share_id, taken_at }] : []

export const Backup = decider({
  machine,
  version: 2,
  command: BackupCommand,
  event: BackupEvent,
  rejection: Rejection,
  propose: {
    RequestBackup: (command) => [BackupRequested.make(Struct.omit(command, ["type"]))],
    QueueBackup: (_, _context, state) => (state.matches("queued") ? [] : [BackupQueued.make({})]),
    StartBackup: () => [BackupStarted.make({})],
    CompleteBackup: (command) => [BackupCompleted.make(Struct.omit(command, ["type"]))],
    FailBackup: ({ reason }) => [BackupFailed.make({ reason })],
    RetryBackup: () => [BackupRetried.make({})],
    ExpireBackup: () => [BackupExpired.make({})],
    DeleteBackup: ({ at, expired }) => [BackupDeleted.make({ at, expired })],
    StartBackupRestore: ({ restore_id }) => [BackupRestoreStarted.make({ restore_id })],
    FinishBackupRestore: ({ restore_id }, { restores }, state) =>
      exists(state) && !restores.includes(restore_id)
        ? []
        : [BackupRestoreFinished.make({ restore_id })],
    AdoptBackup: (command) => [BackupAdopted.make(Struct.omit(command, ["type"]))],
    LoseBackup: ({ reason }) => [BackupLost.make({ reason })],
    StartBackupUndelete: () => [BackupUndeleteStarted.make({})],
    CompleteBackupUndelete: ({ protected_until }) => [BackupUndeleted.make({ protected_until })],
    FailBackupUndelete: ({ reason }) => [BackupUndeleteFailed.make({ reason })],
    RecordRestoreTest: ({ files, bytes }, context, state) =>
      testedOf(context, state).map((tested) =>
        BackupRestoreTested.make({ ...tested, files, bytes }),
      ),
    FailRestoreTest: ({ reason }, context, state) =>
      testedOf(context, state).map((tested) => BackupRestoreTestFailed.make({ ...tested, reason })),
  },
  reject,
})

/** The backup after one of its commits. */
export const backupAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Backup, recorded), ({ context, value }) => ({
    // The decider's state is a snapshot of this file's machine.
    ...(context as Context),
    state: value as BackupStatus | "undeleting" | "deleted",
  }))

/** The paths that a backup could not read, from all of its events. */
export const unreadOf = (log: Log["Service"], backup_id: string) =>
  Stream.runFold(
    log.read(`${Backup.name}.${backup_id}`),
    (): typeof Unread.Type => [],
    (before, { commit }) => {
      const completed = commit.events.find(({ type }) => type === "BackupCompleted")
      if (completed === undefined) return before
      const { partial, unread } = decodeCompleted(completed)
      return unread ?? (partial ? ["/"] : [])
    },
  )

const decodeCompleted = Schema.decodeUnknownSync(BackupCompleted)
