/**
 * The predictions of one node, as far as its spool is in the log.
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
import { PredictionEvent, PredictionMade } from "#events/plant-disease/prediction.ts"
import { PredictionFact, RecordPredictions } from "#schemas/plant-disease/prediction.ts"
import { FactsOutOfOrder } from "#schemas/spooled.ts"

const chart = setup({
  types: { context: {} as FactContext, events: {} as PredictionEvent },
  guards: { follows: ({ context, event }) => follows(context, event) },
  actions: { count: assign(({ context, event }) => withFact(context, event)) },
})

export const machine = chart.createMachine({
  id: "plant-disease.prediction",
  context: no_facts,
  initial: "open",
  states: {
    open: { on: { PredictionMade: { guard: "follows", actions: "count" } } },
  },
})

export const Prediction = decider({
  machine,
  version: 1,
  command: RecordPredictions,
  event: PredictionEvent,
  rejection: FactsOutOfOrder,
  propose: {
    RecordPredictions: (command) => placed(command, (fact) => PredictionMade.make(fact)),
  },
  reject: outOfOrder,
})

/** What is spooled of predictions, and how it is recorded. */
export const predictions = {
  service: "plant-disease",
  fact: PredictionFact,
  to: Prediction,
  record: (facts: Omit<RecordPredictions, "type">) => RecordPredictions.make(facts),
} as const
