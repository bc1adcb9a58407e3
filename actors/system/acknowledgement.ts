/** The position up to which an operator has acknowledged unreadable commits. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { QuarantineEvent, UnreadableAcknowledged } from "#events/system/quarantine.ts"
import { AcknowledgementOutOfOrder, QuarantineCommand } from "#schemas/system/quarantine.ts"

/** The only aggregate of its kind: there is one log. */
export const quarantine_id = "log"

interface Context {
  /** 0: none is acknowledged. */
  readonly through: number
}

export const machine = setup({
  types: { context: {} as Context, events: {} as QuarantineEvent },
  guards: {
    follows: ({ context, event: { through } }) => through > context.through,
  },
}).createMachine({
  id: "system.quarantine",
  context: { through: 0 },
  initial: "open",
  states: {
    open: {
      on: {
        UnreadableAcknowledged: {
          guard: "follows",
          actions: assign(({ event: { through } }) => ({ through })),
        },
      },
    },
  },
})

export const Quarantine = decider({
  machine,
  version: 1,
  command: QuarantineCommand,
  event: QuarantineEvent,
  rejection: AcknowledgementOutOfOrder,
  propose: {
    AcknowledgeUnreadable: ({ type: _, ...acknowledged }) => [
      UnreadableAcknowledged.make(acknowledged),
    ],
  },
  reject: ({ context }, { through }) =>
    new AcknowledgementOutOfOrder({
      detail: `Commits up to ${context.through} are already acknowledged: ${through} is not later.`,
    }),
})
