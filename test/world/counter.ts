/**
 * A small aggregate for tests of the framework: it counts to a limit, and closes at a given time.
 */
import { Schema } from "effect"
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { message } from "#schemas/message.ts"

export const Count = message("Count", { by: Schema.Int })
export const CloseAt = message("CloseAt", { due: Schema.String })
export const Close = message("Close", {})
export const CounterCommand = Schema.Union([Count, CloseAt, Close])
export type CounterCommand = typeof CounterCommand.Type

export const Counted = message("Counted", { by: Schema.Int })
export const ClosePlanned = message("ClosePlanned", { due: Schema.String })
export const Closed = message("Closed", {})
export const CounterEvent = Schema.Union([Counted, ClosePlanned, Closed]).pipe(
  Schema.toTaggedUnion("type"),
)
export type CounterEvent = typeof CounterEvent.Type

export class CounterFull extends Schema.Error<CounterFull>("counter.full")({
  code: Schema.tag("counter.full"),
  total: Schema.Int,
}) {}

interface Context {
  readonly total: number
  readonly due: string | null
}

const total_max = 1_000_000

const counterMachine = setup({
  types: { context: {} as Context, events: {} as CounterEvent },
  guards: {
    fits: ({ context }, { by }: { by: number }) => context.total + by <= total_max,
  },
}).createMachine({
  id: "test.counter",
  context: { total: 0, due: null },
  initial: "open",
  states: {
    open: {
      on: {
        Counted: {
          guard: { type: "fits", params: ({ event }) => ({ by: event.by }) },
          actions: assign(({ context, event }) => ({ total: context.total + event.by })),
        },
        ClosePlanned: { actions: assign(({ event }) => ({ due: event.due })) },
        Closed: { target: "closed", actions: assign(() => ({ due: null })) },
      },
    },
    closed: { type: "final" },
  },
})

export const Counter = decider({
  machine: counterMachine,
  version: 1,
  command: CounterCommand,
  event: CounterEvent,
  rejection: CounterFull,
  propose: {
    // Counting zero produces no event.
    Count: ({ by }) => (by === 0 ? [] : [Counted.make({ by })]),
    CloseAt: ({ due }) => [ClosePlanned.make({ due })],
    Close: () => [Closed.make({})],
  },
  reject: (state) => new CounterFull({ total: state.context.total }),
  timers: ({ context: { due } }) =>
    due === null ? [] : [{ name: "close", due, command: Close.make({}) }],
})
