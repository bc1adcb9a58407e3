/**
 * A target template (Shape B): absent → present → deleted. Only an unreferenced one can be deleted.
 *
 * Source: document 2 §2 Target template, §4 target-templates; DECISIONS, document 2, template.
 */
import { Effect, Struct } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import { changesOf } from "#actors/share-protection/changes.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  TargetTemplateCreated,
  TargetTemplateDeleted,
  TargetTemplateEvent,
  TargetTemplateUpdated,
  TemplatePolicyDeregistered,
  TemplatePolicyRegistered,
  TemplateTargetDeregistered,
  TemplateTargetRegistered,
} from "#events/share-protection/target-template.ts"
import {
  Conflict,
  NotFound,
  Rejection,
  TargetHasDependents,
} from "#schemas/share-protection/rejection.ts"
import {
  type CreateTargetTemplate,
  TargetTemplateCommand,
} from "#schemas/share-protection/target-template.ts"

export interface TargetTemplateContext extends Omit<typeof CreateTargetTemplate.Type, "type"> {
  /** Number of targets and policies that reference it. */
  readonly targets: number
  readonly policies: number
}

type Context = TargetTemplateContext

const chart = setup({
  types: { context: {} as Context, events: {} as TargetTemplateEvent },
  guards: {
    has_targets: ({ context }) => context.targets > 0,
    has_policies: ({ context }) => context.policies > 0,
    has_no_dependents: ({ context }) => context.targets === 0 && context.policies === 0,
  },
})

export const machine = chart.createMachine({
  id: "share-protection.target-template",
  // The context is empty until the template exists, and is not read before.
  context: {} as Context,
  initial: "absent",
  states: {
    absent: {
      on: {
        TargetTemplateCreated: {
          target: "present",
          actions: assign(({ event }) => ({
            ...Struct.omit(event, ["type"]),
            targets: 0,
            policies: 0,
          })),
        },
      },
    },
    present: {
      on: {
        TargetTemplateUpdated: {
          actions: assign(({ event }) => Struct.omit(event, ["type"])),
        },
        TemplateTargetRegistered: {
          actions: assign(({ context }) => ({ targets: context.targets + 1 })),
        },
        TemplateTargetDeregistered: {
          guard: "has_targets",
          actions: assign(({ context }) => ({ targets: context.targets - 1 })),
        },
        TemplatePolicyRegistered: {
          actions: assign(({ context }) => ({ policies: context.policies + 1 })),
        },
        TemplatePolicyDeregistered: {
          guard: "has_policies",
          actions: assign(({ context }) => ({ policies: context.policies - 1 })),
        },
        TargetTemplateDeleted: { target: "deleted", guard: "has_no_dependents" },
      },
    },
    deleted: { type: "final" },
  },
})

const reject = (state: SnapshotFrom<typeof machine>, command: TargetTemplateCommand): Rejection => {
  if (command.type === "CreateTargetTemplate") {
    return new Conflict({ detail: "A target template with this id already exists." })
  }
  if (!state.matches("present")) return new NotFound({ detail: "No such target template." })
  const { targets, policies } = state.context
  const detail = `The template is referenced by ${targets} targets and ${policies} policies.`
  return new TargetHasDependents({ detail })
}

export const TargetTemplate = decider({
  machine,
  version: 1,
  command: TargetTemplateCommand,
  event: TargetTemplateEvent,
  rejection: Rejection,
  propose: {
    CreateTargetTemplate: (command) => [TargetTemplateCreated.make(Struct.omit(command, ["type"]))],
    UpdateTargetTemplate: ({ type: _, ...fields }, context, state) => {
      const changes = changesOf<typeof fields>(context, fields)
      const same = state.matches("present") && Object.keys(changes).length === 0
      return same ? [] : [TargetTemplateUpdated.make(changes)]
    },
    RegisterTemplateTarget: () => [TemplateTargetRegistered.make({})],
    DeregisterTemplateTarget: (_, { targets }, state) =>
      state.matches("present") && targets === 0 ? [] : [TemplateTargetDeregistered.make({})],
    RegisterTemplatePolicy: () => [TemplatePolicyRegistered.make({})],
    DeregisterTemplatePolicy: (_, { policies }, state) =>
      state.matches("present") && policies === 0 ? [] : [TemplatePolicyDeregistered.make({})],
    DeleteTargetTemplate: () => [TargetTemplateDeleted.make({})],
  },
  reject,
})

/** The template after one of its commits. */
export const targetTemplateAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, TargetTemplate, recorded), ({ context, value }) => ({
    // The decider's state is a snapshot of this file's machine.
    ...(context as Context),
    state: value as "present" | "deleted",
  }))
