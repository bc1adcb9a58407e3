/** An election: a sequence of leaders. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { ElectionEvent, LeaderElected } from "#events/system/election.ts"
import { ElectionCommand, ElectionRejection } from "#schemas/system/election.ts"

interface Context {
  readonly holder: string
}

export const machine = setup({
  types: { context: {} as Context, events: {} as ElectionEvent },
}).createMachine({
  id: "system.election",
  context: { holder: "" },
  initial: "open",
  states: {
    open: {
      on: { LeaderElected: { actions: assign(({ event }) => ({ holder: event.holder })) } },
    },
  },
})

export const Election = decider({
  machine,
  version: 1,
  command: ElectionCommand,
  event: ElectionEvent,
  rejection: ElectionRejection,
  propose: {
    ElectLeader: ({ holder }) => [LeaderElected.make({ holder })],
  },
  reject: () => {
    throw new Error("An election rejects no command.")
  },
})
