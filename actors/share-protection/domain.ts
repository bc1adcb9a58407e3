/**
 * A domain's own settings: the configured ones, and those that are applied.
 *
 * Source: document 2 §4 PATCH /v1/admin/domains/{domain_id}; DECISIONS, document 2, domains.
 */
import { Effect, Struct } from "effect"
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import { changesOf } from "#actors/share-protection/changes.ts"
import type { Log, Recorded } from "#events/log.ts"
import { DomainApplied, DomainConfigured, DomainEvent } from "#events/share-protection/domain.ts"
import { DomainCommand, type DomainSettings } from "#schemas/share-protection/domain.ts"
import { Rejection } from "#schemas/share-protection/rejection.ts"

/** Null: the deployment's configuration applies. */
type Settings = Required<DomainSettings>

export interface DomainContext {
  /** The configured settings. */
  readonly settings: Settings
  /** The settings in effect. */
  readonly applied: Settings
}

const unset: Settings = {
  min_workers: null,
  max_workers: null,
  worker_boot_image: null,
  quotas: null,
}

export const machine = setup({
  types: { context: {} as DomainContext, events: {} as DomainEvent },
  actions: {
    configure: assign(({ context, event }) => {
      if (event.type !== "DomainConfigured") return {}
      return { settings: { ...context.settings, ...Struct.omit(event, ["type"]) } }
    }),
  },
}).createMachine({
  id: "share-protection.domain",
  context: { settings: unset, applied: unset },
  initial: "applied",
  states: {
    applied: { on: { DomainConfigured: { target: "pending", actions: "configure" } } },
    pending: {
      on: {
        DomainConfigured: { actions: "configure" },
        DomainApplied: {
          target: "applied",
          actions: assign(({ context }) => ({ applied: context.settings })),
        },
      },
    },
  },
})

export const Domain = decider({
  machine,
  version: 1,
  command: DomainCommand,
  event: DomainEvent,
  rejection: Rejection,
  propose: {
    ConfigureDomain: ({ type: _, ...fields }, { settings }) => {
      const changes = changesOf<DomainSettings>(settings, fields)
      return Struct.keys(changes).length === 0 ? [] : [DomainConfigured.make(changes)]
    },
    ApplyDomain: (_, _context, state) => (state.matches("pending") ? [DomainApplied.make({})] : []),
  },
  reject: () => {
    throw new Error("A domain rejects no command.")
  },
})

/** The domain after one of its commits; `pending`: a change waits for the next reconciliation. */
export const domainAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Domain, recorded), (state) => ({
    // The decider's state is a snapshot of this file's machine.
    state: state.value as "applied" | "pending",
    pending: state.value === "pending",
    ...(state.context as DomainContext),
  }))
