/**
 * The predictions of one node, recorded from its spool.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { decider } from "#actors/decider.ts"
import { factChart, factEvents, outOfOrder } from "#actors/fact-log.ts"
import { PredictionEvent, PredictionMade } from "#events/plant-disease/prediction.ts"
import { PredictionFact, RecordPredictions } from "#schemas/plant-disease/prediction.ts"
import { FactsOutOfOrder } from "#schemas/spooled.ts"

export const machine = factChart("plant-disease.prediction", "PredictionMade")

export const Prediction = decider({
  machine,
  version: 1,
  command: RecordPredictions,
  event: PredictionEvent,
  rejection: FactsOutOfOrder,
  propose: {
    RecordPredictions: (command) => factEvents(command, (fact) => PredictionMade.make(fact)),
  },
  reject: outOfOrder,
})

/** How spooled predictions are recorded. */
export const predictions = {
  service: "plant-disease",
  fact: PredictionFact,
  to: Prediction,
  record: (facts: Omit<RecordPredictions, "type">) => RecordPredictions.make(facts),
} as const
