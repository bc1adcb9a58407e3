/**
 * The searches of one node, as far as its spool is in the log.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import {
  type FactContext,
  follows,
  no_facts,
  outOfOrder,
  placed,
  withFact,
} from "#actors/fact-log.ts"
import { CarrierSearchCompleted, SearchEvent } from "#events/carrier-search/search.ts"
import { RecordSearches, SearchFact } from "#schemas/carrier-search/search.ts"
import { FactsOutOfOrder } from "#schemas/spooled.ts"

const chart = setup({
  types: { context: {} as FactContext, events: {} as SearchEvent },
  guards: { follows: ({ context, event }) => follows(context, event) },
  actions: { count: assign(({ context, event }) => withFact(context, event)) },
})

export const machine = chart.createMachine({
  id: "carrier-search.search",
  context: no_facts,
  initial: "open",
  states: {
    open: { on: { CarrierSearchCompleted: { guard: "follows", actions: "count" } } },
  },
})

export const Search = decider({
  machine,
  version: 1,
  command: RecordSearches,
  event: SearchEvent,
  rejection: FactsOutOfOrder,
  propose: {
    RecordSearches: (command) => placed(command, (fact) => CarrierSearchCompleted.make(fact)),
  },
  reject: outOfOrder,
})

/** What is spooled of searches, and how it is recorded. */
export const searches = {
  service: "carrier-search",
  fact: SearchFact,
  to: Search,
  record: (facts: Omit<RecordSearches, "type">) => RecordSearches.make(facts),
} as const
