/** The spool of predictions that are not yet in the log. */
import { Context } from "effect"
import type { Spool } from "#actors/spool.ts"
import type { PredictionFact } from "#schemas/plant-disease/prediction.ts"

export class PredictionSpool extends Context.Service<PredictionSpool, Spool<PredictionFact>>()(
  "actors/plant-disease/PredictionSpool",
) {}
