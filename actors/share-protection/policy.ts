/**
 * The protection of a share: its single policy and, in parallel, the single backup in progress.
 *
 * Both belong to one aggregate, so the log itself rejects a second of either.
 * Source: document 2 §2 Policy, §4 rules 2 and 3; DECISIONS, document 2, policy, backup create.
 */
import { Effect, Struct } from "effect"
import { and, assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import { changesOf } from "#actors/share-protection/changes.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  PolicyDefined,
  PolicyDeleted,
  PolicyEvent,
  PolicyUpdated,
  ShareBackupFinished,
  ShareBackupStarted,
  TickSkipped,
} from "#events/share-protection/policy.ts"
import type { BackupId, PolicyId } from "#schemas/share-protection/id.ts"
import { type DefinePolicy, PolicyCommand } from "#schemas/share-protection/policy.ts"
import {
  Conflict,
  NotFound,
  PolicyHasInflightBackup,
  Rejection,
} from "#schemas/share-protection/rejection.ts"

export interface PolicyContext {
  /** The share's policy, if any. */
  readonly policy: Omit<typeof DefinePolicy.Type, "type"> | null
  /** The backup in progress and its policy, if any. */
  readonly backup: { readonly backup_id: BackupId; readonly policy_id: PolicyId | null } | null
  /** RFC 3339: the last tick of the current policy that was used or skipped. */
  readonly last_tick: string | null
}

type Context = PolicyContext

const chart = setup({
  types: { context: {} as Context, events: {} as PolicyEvent },
  guards: {
    is_of_the_policy: ({ context, event }) =>
      "policy_id" in event && (event.policy_id === null || event.policy_id === context.policy?.id),
    is_of_no_backup_under_way: ({ context: { policy, backup } }) =>
      backup === null || backup.policy_id !== policy?.id,
    is_enabled_or_on_demand: ({ context: { policy }, event }) =>
      "tick" in event && (event.tick === null || policy?.enabled === true),
    is_after_the_last_tick: ({ context: { last_tick }, event }) =>
      "tick" in event && (event.tick === null || last_tick === null || event.tick > last_tick),
    is_under_way: ({ context: { backup }, event }) =>
      "backup_id" in event && event.backup_id === backup?.backup_id,
  },
})

export const machine = chart.createMachine({
  id: "share-protection.policy",
  context: { policy: null, backup: null, last_tick: null },
  type: "parallel",
  states: {
    policy: {
      initial: "none",
      states: {
        none: {
          on: {
            PolicyDefined: {
              target: "defined",
              actions: assign(({ event }) => ({ policy: Struct.omit(event, ["type"]) })),
            },
          },
        },
        defined: {
          on: {
            PolicyUpdated: {
              guard: "is_of_the_policy",
              actions: assign(({ context: { policy }, event }) => ({
                policy: policy && { ...policy, ...Struct.omit(event, ["type", "policy_id"]) },
              })),
            },
            PolicyDeleted: {
              target: "none",
              guard: and(["is_of_the_policy", "is_of_no_backup_under_way"]),
              actions: assign({ policy: null, last_tick: null }),
            },
            TickSkipped: {
              guard: and(["is_of_the_policy", "is_after_the_last_tick"]),
              actions: assign(({ event: { tick } }) => ({ last_tick: tick })),
            },
          },
        },
      },
    },
    backup: {
      initial: "idle",
      states: {
        idle: {
          on: {
            ShareBackupStarted: {
              target: "in_flight",
              guard: and(["is_of_the_policy", "is_enabled_or_on_demand", "is_after_the_last_tick"]),
              actions: assign(({ context, event: { backup_id, policy_id, tick } }) => ({
                backup: { backup_id, policy_id },
                last_tick: tick ?? context.last_tick,
              })),
            },
          },
        },
        in_flight: {
          on: {
            ShareBackupFinished: {
              target: "idle",
              guard: "is_under_way",
              actions: assign({ backup: null }),
            },
          },
        },
      },
    },
  },
})

/** Whether a command names a policy other than the share's. */
const isOtherPolicy = ({ policy }: Context, policy_id: PolicyId | null) =>
  policy_id !== null && policy_id !== policy?.id

const reject = ({ context }: SnapshotFrom<typeof machine>, command: PolicyCommand): Rejection => {
  const { policy, backup, last_tick } = context
  if (command.type === "DefinePolicy") {
    return new Conflict({ detail: `The share already has a policy: ${policy?.id}.` })
  }
  // FinishShareBackup proposes nothing unless that backup is in progress.
  if (command.type === "FinishShareBackup") throw new Error(`${command.type} is never rejected`)
  if (isOtherPolicy(context, command.policy_id)) return new NotFound({ detail: "No such policy." })
  if (command.type === "DeletePolicy") {
    const detail = `Backup ${backup?.backup_id} of the policy is in progress.`
    return new PolicyHasInflightBackup({ detail })
  }
  if (command.type === "StartShareBackup" && backup !== null) {
    return new Conflict({ detail: `Backup ${backup.backup_id} of the share is in progress.` })
  }
  if (policy?.enabled === false) return new Conflict({ detail: "The policy is not enabled." })
  return new Conflict({ detail: `The schedule's ticks up to ${last_tick} are already handled.` })
}

export const Policy = decider({
  machine,
  version: 1,
  command: PolicyCommand,
  event: PolicyEvent,
  rejection: Rejection,
  propose: {
    DefinePolicy: (command) => [PolicyDefined.make(Struct.omit(command, ["type"]))],
    UpdatePolicy: ({ type: _, policy_id, ...fields }, { policy }) => {
      const changes = changesOf<typeof fields>(policy ?? {}, fields)
      const is_same = policy?.id === policy_id && Object.keys(changes).length === 0
      return is_same ? [] : [PolicyUpdated.make({ policy_id, ...changes })]
    },
    DeletePolicy: ({ policy_id, project_id }) => [PolicyDeleted.make({ policy_id, project_id })],
    StartShareBackup: ({ backup_id, policy_id, tick }) => [
      ShareBackupStarted.make({ backup_id, policy_id, tick }),
    ],
    FinishShareBackup: ({ backup_id }, { backup }) =>
      backup?.backup_id === backup_id ? [ShareBackupFinished.make({ backup_id })] : [],
    SkipTick: ({ policy_id, tick, reason }) => [TickSkipped.make({ policy_id, tick, reason })],
  },
  reject,
})

/** The share's protection after one of its commits. */
export const policyAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Policy, recorded), (state) => {
    // The decider's state is a snapshot of this file's machine.
    const context = state.context as Context
    return { ...context, state: context.policy === null ? ("none" as const) : ("defined" as const) }
  })
