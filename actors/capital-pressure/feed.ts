/**
 * The ingest status of a metric, of `prices` or of `watchlist`: never → ingested ⇄ failing.
 *
 * Source: document 3 §2 A SourcesOut.
 */
import { Equal, Struct } from "effect"
import { assign, setup } from "xstate"
import { demoMixed } from "#actors/capital-pressure/year.ts"
import { decider } from "#actors/decider.ts"
import { FeedEvent, FeedFailed, FeedIngested } from "#events/capital-pressure/feed.ts"
import { FeedCommand } from "#schemas/capital-pressure/feed.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"

export interface FeedContext {
  /** Whether the feed's data is generated; null before its first ingest. */
  readonly demo: boolean | null
  /** The last event: an equal one changes nothing. */
  readonly last: FeedEvent | null
}

const chart = setup({
  types: { context: {} as FeedContext, events: {} as FeedEvent },
  guards: {
    is_of_kind: ({ context, event }) =>
      event.type === "FeedIngested" && (context.demo === null || context.demo === event.demo),
  },
  actions: {
    learn: assign(({ event }) => ({
      last: event,
      ...(event.type === "FeedIngested" ? { demo: event.demo } : {}),
    })),
  },
})

const transitions = {
  on: {
    FeedIngested: { guard: "is_of_kind", target: "ingested", actions: "learn" },
    FeedFailed: { target: "failing", actions: "learn" },
  },
} as const

export const machine = chart.createMachine({
  id: "capital-pressure.feed",
  context: { demo: null, last: null },
  initial: "never",
  states: { never: transitions, ingested: transitions, failing: transitions },
})

/** The event, unless it equals the last one. */
const unlessLast = (event: FeedEvent, { last }: FeedContext) =>
  Equal.equals(event, last) ? [] : [event]

export const Feed = decider({
  machine,
  version: 1,
  command: FeedCommand,
  event: FeedEvent,
  rejection: Rejection,
  propose: {
    RecordIngest: (command, context) =>
      unlessLast(FeedIngested.make(Struct.omit(command, ["type"])), context),
    RecordFeedFailure: (command, context) =>
      unlessLast(FeedFailed.make(Struct.omit(command, ["type"])), context),
  },
  reject: (_, command) => {
    if (command.type === "RecordIngest") return demoMixed(command.demo)
    throw new Error("A feed's failure is never rejected.")
  },
})
