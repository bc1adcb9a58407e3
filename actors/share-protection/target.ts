/**
 * A target: its enrollment (pending → available or error) and, in parallel, the format of its
 * repository (unknown → settled ⇄ upgrading).
 *
 * Source: document 2 §2 Target, §3 Target, §4 rules 4 and 6; DECISIONS, document 2, target create.
 */
import { Effect, Struct } from "effect"
import { and, assign, not, type SnapshotFrom, setup, stateIn } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import { changesOf } from "#actors/share-protection/changes.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  TargetBackupRegistered,
  TargetBackupsDeregistered,
  TargetCreated,
  TargetDeleted,
  TargetEnrolled,
  TargetEnrollmentFailed,
  TargetEnrollmentRestarted,
  TargetEvent,
  TargetFormatUpgraded,
  TargetFormatUpgradeFailed,
  TargetFormatUpgradeStarted,
  TargetLocksExtended,
  TargetPolicyDeregistered,
  TargetPolicyRegistered,
  TargetPreflighted,
  TargetUpdated,
  TargetUsageMeasured,
} from "#events/share-protection/target.ts"
import {
  Conflict,
  NotFound,
  Rejection,
  RepositoryLocked,
  TargetHasDependents,
} from "#schemas/share-protection/rejection.ts"
import {
  type Capabilities,
  type CompleteEnrollment,
  type CreateTarget,
  TargetCommand,
  type TargetStatus,
  type UsageStats,
} from "#schemas/share-protection/target.ts"

type Fields = Omit<typeof CreateTarget.Type, "type">
type Enrolled = Omit<typeof CompleteEnrollment.Type, "type">

/** `job_id` is the job of the current or last enrollment. */
export interface TargetContext extends Fields {
  readonly repository_password_ref: Enrolled["repository_password_ref"] | null
  readonly capabilities: Capabilities | null
  readonly preflight_at: string | null
  readonly usage_stats: UsageStats | null
  /** RFC 3339: end of the locks on objects that its repository needs; null while unknown. */
  readonly protected_until: string | null
  readonly format: Enrolled["format"] | null
  readonly engine_profile: Enrolled["engine_profile"] | null
  /** The running job that upgrades the format, if any. */
  readonly format_job_id: Enrolled["job_id"] | null
  /** Why the last enrollment failed. */
  readonly reason: string | null
  /** Number of policies and backups that reference it. */
  readonly policies: number
  readonly backups: number
}

type Context = TargetContext

/** Context of a target before its first enrollment. */
const unenrolled = {
  repository_password_ref: null,
  capabilities: null,
  preflight_at: null,
  usage_stats: null,
  protected_until: null,
  format: null,
  engine_profile: null,
  format_job_id: null,
  reason: null,
  policies: 0,
  backups: 0,
}

const is_pending = stateIn({ present: { enrollment: "pending" } })
const is_upgrading = stateIn({ present: { format: "upgrading" } })

const chart = setup({
  types: { context: {} as Context, events: {} as TargetEvent },
  guards: {
    is_of_enrollment: ({ context, event }) => "job_id" in event && event.job_id === context.job_id,
    is_of_upgrade: ({ context, event }) =>
      "job_id" in event && event.job_id === context.format_job_id,
    stays_in_place: (_, changes: Partial<Fields>) =>
      changes.endpoint === undefined &&
      changes.bucket === undefined &&
      changes.addressing_mode === undefined,
    has_policies: ({ context }) => context.policies > 0,
    has_backups: ({ context, event }) =>
      event.type === "TargetBackupsDeregistered" && context.backups >= event.count,
    is_not_locked: ({ context: { protected_until }, event }) =>
      event.type === "TargetBackupsDeregistered" &&
      (event.at === undefined || protected_until === null || event.at >= protected_until),
    has_no_dependents: ({ context }) => context.policies === 0 && context.backups === 0,
  },
  actions: {
    change: assign(({ context, event }) =>
      event.type === "TargetUpdated" ? Struct.omit(event, ["type"]) : context,
    ),
    add_backup: assign(({ context }) => ({ backups: context.backups + 1 })),
  },
})

/** The two parallel regions of an existing target. */
const enrollment = chart.createStateConfig({
  initial: "pending",
  states: {
    pending: {
      on: {
        TargetUpdated: { actions: "change" },
        TargetEnrolled: {
          target: "available",
          guard: "is_of_enrollment",
          actions: assign(({ event }) => ({
            ...Struct.omit(event, ["type"]),
            preflight_at: event.capabilities.checked_at,
            reason: null,
          })),
        },
        TargetEnrollmentFailed: {
          target: "error",
          guard: "is_of_enrollment",
          actions: assign(({ event: { reason } }) => ({ reason })),
        },
      },
    },
    available: {
      on: {
        TargetUpdated: {
          guard: { type: "stays_in_place", params: ({ event }) => event },
          actions: "change",
        },
      },
    },
    error: {
      on: {
        TargetUpdated: { actions: "change" },
        TargetEnrollmentRestarted: {
          target: "pending",
          actions: assign(({ event: { job_id } }) => ({ job_id, reason: null })),
        },
      },
    },
  },
})

const format = chart.createStateConfig({
  initial: "unknown",
  states: {
    unknown: {
      on: {
        TargetBackupRegistered: { actions: "add_backup" },
        TargetEnrolled: {
          target: "settled",
          guard: and([is_pending, "is_of_enrollment"]),
        },
      },
    },
    settled: {
      on: {
        TargetBackupRegistered: { actions: "add_backup" },
        TargetFormatUpgradeStarted: {
          target: "upgrading",
          actions: assign(({ event: { job_id } }) => ({ format_job_id: job_id })),
        },
      },
    },
    upgrading: {
      on: {
        TargetFormatUpgraded: {
          target: "settled",
          guard: "is_of_upgrade",
          actions: assign(({ event: { to_format } }) => ({
            format: to_format,
            format_job_id: null,
          })),
        },
        TargetFormatUpgradeFailed: {
          target: "settled",
          guard: "is_of_upgrade",
          actions: assign({ format_job_id: null }),
        },
      },
    },
  },
})

export const machine = chart.createMachine({
  id: "share-protection.target",
  // The context is empty until the target exists, and is not read before.
  context: {} as Context,
  initial: "absent",
  states: {
    absent: {
      on: {
        TargetCreated: {
          target: "present",
          actions: assign(({ event }) => ({ ...unenrolled, ...Struct.omit(event, ["type"]) })),
        },
      },
    },
    present: {
      type: "parallel",
      states: { enrollment, format },
      on: {
        TargetPreflighted: {
          actions: assign(({ context, event: { at, capabilities } }) => ({
            preflight_at: at,
            capabilities: capabilities ?? context.capabilities,
          })),
        },
        TargetUsageMeasured: {
          actions: assign(({ event: { usage_stats } }) => ({ usage_stats })),
        },
        TargetLocksExtended: {
          actions: assign(({ event: { protected_until } }) => ({ protected_until })),
        },
        TargetPolicyRegistered: {
          actions: assign(({ context }) => ({ policies: context.policies + 1 })),
        },
        TargetPolicyDeregistered: {
          guard: "has_policies",
          actions: assign(({ context }) => ({ policies: context.policies - 1 })),
        },
        TargetBackupsDeregistered: {
          guard: and(["has_backups", "is_not_locked"]),
          actions: assign(({ context, event }) => ({ backups: context.backups - event.count })),
        },
        TargetDeleted: { target: "deleted", guard: and(["has_no_dependents", not(is_upgrading)]) },
      },
    },
    deleted: { type: "final" },
  },
})

const isEnrolling = (state: SnapshotFrom<typeof machine>, job_id: string) =>
  state.matches({ present: { enrollment: "pending" } }) && state.context.job_id === job_id

const isUpgrading = (state: SnapshotFrom<typeof machine>, job_id: string) =>
  state.matches({ present: { format: "upgrading" } }) && state.context.format_job_id === job_id

const exists = (state: SnapshotFrom<typeof machine>) => state.matches("present")

const reject = (state: SnapshotFrom<typeof machine>, command: TargetCommand): Rejection => {
  if (command.type === "CreateTarget") {
    return new Conflict({ detail: "A target with this id already exists." })
  }
  if (!exists(state)) return new NotFound({ detail: "No such target." })
  const { policies, backups, format_job_id } = state.context
  if (command.type === "UpdateTarget") {
    const detail = "The repository of an available target cannot be moved."
    return new Conflict({ detail })
  }
  if (command.type === "RestartEnrollment") {
    return new Conflict({ detail: "Only a target whose enrollment failed can be enrolled again." })
  }
  if (command.type === "DeleteTarget" && policies + backups > 0) {
    const detail = `The target is referenced by ${policies} policies and ${backups} backups.`
    return new TargetHasDependents({ detail })
  }
  if (command.type === "DeregisterTargetBackups") return locked(state.context)
  if (format_job_id === null) {
    return new Conflict({ detail: "A target that is not available has no format to upgrade." })
  }
  return new RepositoryLocked({
    detail: `Job ${format_job_id} is upgrading the repository's format.`,
  })
}

const locked = ({ protected_until }: Context) =>
  new Conflict({ detail: `The backup's objects are locked: protected_until ${protected_until}.` })

const registered = TargetBackupRegistered.make({})

const moved_reason = "The target was moved to another bucket during its enrollment."

export const Target = decider({
  machine,
  version: 2,
  command: TargetCommand,
  event: TargetEvent,
  rejection: Rejection,
  propose: {
    CreateTarget: (command) => [TargetCreated.make(Struct.omit(command, ["type"]))],
    UpdateTarget: ({ type: _, ...fields }, context, state) => {
      const changes = changesOf<typeof fields>(context, fields)
      const is_same = exists(state) && Object.keys(changes).length === 0
      return is_same ? [] : [TargetUpdated.make(changes)]
    },
    CompleteEnrollment: ({ type: _, place = {}, ...enrolled }, context, state) => {
      const { job_id } = enrolled
      if (exists(state) && !isEnrolling(state, job_id)) return []
      const is_moved = Object.keys(changesOf<Partial<Fields>>(context, place)).length > 0
      return is_moved
        ? [TargetEnrollmentFailed.make({ job_id, reason: moved_reason })]
        : [TargetEnrolled.make(enrolled)]
    },
    FailEnrollment: ({ job_id, reason }, _, state) =>
      exists(state) && !isEnrolling(state, job_id)
        ? []
        : [TargetEnrollmentFailed.make({ job_id, reason })],
    RestartEnrollment: ({ job_id }) => [TargetEnrollmentRestarted.make({ job_id })],
    RecordPreflight: ({ capabilities, reason, at }) => [
      TargetPreflighted.make({ capabilities, reason, at }),
    ],
    RegisterTargetPolicy: () => [TargetPolicyRegistered.make({})],
    DeregisterTargetPolicy: (_, { policies }, state) =>
      exists(state) && policies === 0 ? [] : [TargetPolicyDeregistered.make({})],
    RegisterTargetBackup: () => [registered],
    DeregisterTargetBackups: ({ type: _, count, ...when }, { backups }, state) => {
      const fewer = exists(state) ? Math.min(count, backups) : count
      return fewer === 0 ? [] : [TargetBackupsDeregistered.make({ count: fewer, ...when })]
    },
    // A target is readable exactly when it accepts a backup; otherwise the chart rejects the event.
    CheckTargetReadable: (_, _context, state) => (state.can(registered) ? [] : [registered]),
    StartFormatUpgrade: ({ job_id }, { format }) => [
      // A target without a format is not enrolled, and the chart rejects the event.
      TargetFormatUpgradeStarted.make({ job_id, from_format: format ?? 1 }),
    ],
    CompleteFormatUpgrade: ({ job_id, to_format }, { format }, state) =>
      exists(state) && !isUpgrading(state, job_id)
        ? []
        : [TargetFormatUpgraded.make({ job_id, from_format: format ?? 1, to_format })],
    FailFormatUpgrade: ({ job_id, reason }, _, state) =>
      exists(state) && !isUpgrading(state, job_id)
        ? []
        : [TargetFormatUpgradeFailed.make({ job_id, reason })],
    RecordTargetLocks: ({ protected_until }, context, state) => {
      const known = exists(state) ? context.protected_until : null
      const is_later = known === null || protected_until > known
      return is_later ? [TargetLocksExtended.make({ protected_until })] : []
    },
    RecordTargetUsage: ({ usage_stats }) => [TargetUsageMeasured.make({ usage_stats })],
    DeleteTarget: () => [TargetDeleted.make({})],
  },
  reject,
})

const statusOf = (state: SnapshotFrom<typeof machine>): TargetStatus | "deleted" => {
  if (state.matches({ present: { enrollment: "pending" } })) return "pending"
  if (state.matches({ present: { enrollment: "available" } })) return "available"
  return exists(state) ? "error" : "deleted"
}

/** The target after one of its commits. */
export const targetAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Target, recorded), (state) => {
    // The decider's state is a snapshot of this file's machine.
    const { context } = state as SnapshotFrom<typeof machine>
    return { ...context, status: statusOf(state), upgrading: context.format_job_id !== null }
  })
