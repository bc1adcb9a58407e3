/**
 * The operator's watchlist: absent → real, or demo. Neither ever becomes the other.
 *
 * Source: document 3 §2 A WatchlistOut; decisions of document 3, watchlist.
 */
import { Equal, Struct } from "effect"
import { assign, setup } from "xstate"
import { demoMixed } from "#actors/capital-pressure/year.ts"
import { decider } from "#actors/decider.ts"
import { WatchlistEvent, WatchlistSet } from "#events/capital-pressure/watchlist.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"
import { WatchlistCommand, type WatchlistTarget } from "#schemas/capital-pressure/watchlist.ts"

/** The only aggregate of its kind. */
export const watchlist_id = "main"

export interface WatchlistContext {
  readonly targets: ReadonlyArray<WatchlistTarget>
}

const chart = setup({
  types: { context: {} as WatchlistContext, events: {} as WatchlistEvent },
  guards: {
    is_real: ({ event }) => !event.demo,
    is_demo: ({ event }) => event.demo,
  },
  actions: { learn: assign(({ event }) => ({ targets: event.targets })) },
})

export const machine = chart.createMachine({
  id: "capital-pressure.watchlist",
  context: { targets: [] },
  initial: "absent",
  states: {
    absent: {
      on: {
        WatchlistSet: [
          { guard: "is_demo", target: "demo", actions: "learn" },
          { target: "real", actions: "learn" },
        ],
      },
    },
    real: { on: { WatchlistSet: { guard: "is_real", actions: "learn" } } },
    demo: { on: { WatchlistSet: { guard: "is_demo", actions: "learn" } } },
  },
})

export const Watchlist = decider({
  machine,
  version: 1,
  command: WatchlistCommand,
  event: WatchlistEvent,
  rejection: Rejection,
  propose: {
    SetWatchlist: (command, { targets }, state) =>
      state.matches(command.demo ? "demo" : "real") && Equal.equals(targets, command.targets)
        ? []
        : [WatchlistSet.make(Struct.omit(command, ["type"]))],
  },
  reject: (_, { demo }) => demoMixed(demo),
})
