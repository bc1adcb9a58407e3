/**
 * A rollout: replaces one worker after another, domain by domain, until all are replaced or a new
 * worker fails to boot.
 *
 * Source: document 2 §6, §9; DECISIONS, document 2, rollouts.
 */
import { Effect, Struct } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  ReplacementCompleted,
  ReplacementStarted,
  RolloutCreated,
  RolloutDomainCompleted,
  RolloutEvent,
  RolloutHalted,
  RolloutSucceeded,
} from "#events/share-protection/rollout.ts"
import { DomainId, type WorkerId } from "#schemas/share-protection/id.ts"
import { Conflict, NotFound, Rejection } from "#schemas/share-protection/rejection.ts"
import { RolloutCommand, type RolloutState } from "#schemas/share-protection/rollout.ts"

export interface Replacement {
  readonly old_worker_id: WorkerId
  readonly new_worker_id: WorkerId
}

export interface RolloutContext {
  readonly image: string
  /** Canary first. */
  readonly domain_ids: ReadonlyArray<DomainId>
  /** Index of the current domain; the number of domains when all are complete. */
  readonly domain_index: number
  /** The replacement in progress. */
  readonly replacement: Replacement | null
  readonly replaced_workers: number
  /** Why it halted. */
  readonly reason: string | null
}

type Context = RolloutContext

/** The domain of a rollout before it starts and after its last domain: without replacements. */
const no_domain = DomainId.make("none")

const domainOf = ({ domain_ids, domain_index }: Context) => domain_ids[domain_index] ?? no_domain

const isPair = ({ replacement }: Context, { old_worker_id, new_worker_id }: Replacement) =>
  replacement?.old_worker_id === old_worker_id && replacement.new_worker_id === new_worker_id

const chart = setup({
  types: { context: {} as Context, events: {} as RolloutEvent },
  guards: {
    is_through: ({ context }) => context.domain_index === context.domain_ids.length,
    is_present_domain: ({ context, event }) =>
      "domain_id" in event && event.domain_id === context.domain_ids[context.domain_index],
    is_present_pair: ({ context, event }) => "old_worker_id" in event && isPair(context, event),
  },
})

export const machine = chart.createMachine({
  id: "share-protection.rollout",
  context: {
    image: "",
    domain_ids: [],
    domain_index: 0,
    replacement: null,
    replaced_workers: 0,
    reason: null,
  },
  initial: "absent",
  states: {
    absent: {
      on: {
        RolloutCreated: {
          target: "running",
          actions: assign(({ event }) => Struct.omit(event, ["type"])),
        },
      },
    },
    running: {
      initial: "between",
      states: {
        between: {
          on: {
            ReplacementStarted: {
              guard: "is_present_domain",
              target: "replacing",
              actions: assign(({ event: { old_worker_id, new_worker_id } }) => ({
                replacement: { old_worker_id, new_worker_id },
              })),
            },
            RolloutDomainCompleted: {
              guard: "is_present_domain",
              actions: assign(({ context }) => ({ domain_index: context.domain_index + 1 })),
            },
            RolloutSucceeded: { guard: "is_through", target: "#succeeded" },
          },
        },
        replacing: {
          on: {
            ReplacementCompleted: {
              guard: "is_present_pair",
              target: "between",
              actions: assign(({ context }) => ({
                replacement: null,
                replaced_workers: context.replaced_workers + 1,
              })),
            },
            RolloutHalted: {
              guard: "is_present_pair",
              target: "#halted",
              actions: assign(({ event }) => ({ replacement: null, reason: event.reason })),
            },
          },
        },
      },
    },
    succeeded: { id: "succeeded", type: "final" },
    halted: { id: "halted", type: "final" },
  },
})

type State = SnapshotFrom<typeof machine>

const topOf = (state: State): string => (typeof state.value === "string" ? state.value : "running")

const reject = (state: State, command: RolloutCommand): Rejection => {
  if (state.matches("absent")) return new NotFound({ detail: "No such rollout." })
  if (command.type === "CreateRollout")
    return new Conflict({ detail: "The rollout already exists." })
  const { replacement, domain_ids } = state.context
  if (replacement !== null) {
    const { old_worker_id, new_worker_id } = replacement
    return new Conflict({ detail: `Worker ${new_worker_id} is replacing ${old_worker_id}.` })
  }
  if (command.type === "CompleteRolloutDomain" && state.matches("running")) {
    const at = domain_ids[state.context.domain_index]
    return new Conflict({ detail: `The rollout is at domain ${at}.` })
  }
  return new Conflict({ detail: `A rollout that is ${topOf(state)} rejects ${command.type}.` })
}

export const Rollout = decider({
  machine,
  version: 1,
  command: RolloutCommand,
  event: RolloutEvent,
  rejection: Rejection,
  propose: {
    CreateRollout: ({ image, domain_ids }) => [RolloutCreated.make({ image, domain_ids })],
    StartReplacement: ({ type: _, ...pair }, context) => [
      ReplacementStarted.make({ ...pair, domain_id: domainOf(context) }),
    ],
    CompleteReplacement: ({ type: _, ...pair }, context, state) =>
      state.matches("absent") || isPair(context, pair)
        ? [ReplacementCompleted.make({ ...pair, domain_id: domainOf(context) })]
        : [],
    FailReplacement: ({ type: _, ...failure }, context, state) =>
      state.matches("absent") || isPair(context, failure)
        ? [RolloutHalted.make({ ...failure, domain_id: domainOf(context) })]
        : [],
    CompleteRolloutDomain: ({ domain_id }, { domain_ids }) => {
      const completed = RolloutDomainCompleted.make({ domain_id })
      const is_last = domain_ids.at(-1) === domain_id
      return is_last ? [completed, RolloutSucceeded.make({})] : [completed]
    },
  },
  reject,
})

/** The rollout after one of its commits. */
export const rolloutAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Rollout, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine, and a commit's is not absent.
    state: topOf(state as State) as RolloutState,
    ...(state.context as RolloutContext),
  }))
