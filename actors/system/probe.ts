/** A probe of the command path: a commit that only proves that commits are possible. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { PathProbed, ProbeEvent } from "#events/system/probe.ts"
import { ProbeCommand, ProbeRejection } from "#schemas/system/probe.ts"

/** The only aggregate of its kind: there is one log. */
export const probe_id = "path"

interface Context {
  /** Probes so far. */
  readonly count: number
}

export const machine = setup({
  types: { context: {} as Context, events: {} as ProbeEvent },
}).createMachine({
  id: "system.probe",
  context: { count: 0 },
  initial: "open",
  states: {
    open: {
      on: { PathProbed: { actions: assign(({ context }) => ({ count: context.count + 1 })) } },
    },
  },
})

export const Probe = decider({
  machine,
  version: 1,
  command: ProbeCommand,
  event: ProbeEvent,
  rejection: ProbeRejection,
  propose: {
    ProbePath: () => [PathProbed.make({})],
  },
  reject: () => {
    throw new Error("A probe rejects no command.")
  },
})
