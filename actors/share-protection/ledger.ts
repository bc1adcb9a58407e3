/**
 * The ledger of a project or a domain: counts resources and enforces their quotas.
 *
 * Source: document 2 §7 svc.quota_exceeded; DECISIONS, document 2, quotas.
 */
import { Effect } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import { LedgerEvent, Released, Reserved } from "#events/share-protection/ledger.ts"
import { type Counted, LedgerCommand } from "#schemas/share-protection/ledger.ts"
import { QuotaExceeded, Rejection } from "#schemas/share-protection/rejection.ts"

export type LedgerContext = Readonly<Record<Counted, number>>

const chart = setup({
  types: { context: {} as LedgerContext, events: {} as LedgerEvent },
  guards: {
    has_room: ({ context }, { what, limit }: { what: Counted; limit: number }) =>
      context[what] < limit,
    is_counted: ({ context }, { what, count }: { what: Counted; count: number }) =>
      context[what] >= count,
  },
})

export const machine = chart.createMachine({
  id: "share-protection.ledger",
  context: { targets: 0, policies: 0, backups: 0, templates: 0 },
  initial: "open",
  states: {
    open: {
      on: {
        Reserved: {
          guard: { type: "has_room", params: ({ event }) => event },
          actions: assign(({ context, event: { what } }) => ({ [what]: context[what] + 1 })),
        },
        Released: {
          guard: { type: "is_counted", params: ({ event }) => event },
          actions: assign(({ context, event: { what, count } }) => ({
            [what]: context[what] - count,
          })),
        },
      },
    },
  },
})

const reject = (_: SnapshotFrom<typeof machine>, command: LedgerCommand): Rejection => {
  // Release proposes no more than the current count.
  if (command.type === "Release") throw new Error(`${command.type} is never rejected`)
  const { what, limit } = command
  return new QuotaExceeded({ detail: `The project has reached its limit of ${limit} ${what}.` })
}

export const Ledger = decider({
  machine,
  version: 2,
  command: LedgerCommand,
  event: LedgerEvent,
  rejection: Rejection,
  propose: {
    Reserve: ({ what, limit }) => [Reserved.make({ what, limit })],
    Release: ({ what, count }, context) => {
      const released = Math.min(count, context[what])
      return released === 0 ? [] : [Released.make({ what, count: released })]
    },
  },
  reject,
})

/** The ledger after one of its commits. */
export const ledgerAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(stateAfter(log, Ledger, recorded), ({ context }) => ({
    // The decider's state is a snapshot of this file's machine.
    ...(context as LedgerContext),
    state: "open" as const,
  }))
