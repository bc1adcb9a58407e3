/** A prediction as a fact: its aggregate, its published events and its audit entries. */
import { describe } from "@effect/vitest"
import { machine, predictions } from "#actors/plant-disease/prediction.ts"
import { PredictionMade } from "#events/plant-disease/prediction.ts"
import { published as publications } from "#projections/plant-disease/published.ts"
import { published as types } from "#schemas/plant-disease/published.ts"
import { factContract } from "../contract/fact-log.ts"
import { predictionFact } from "../world/spooled.ts"

const image_sha256 = `${"0".repeat(63)}1`
const model_sha256 = "0".repeat(64)

describe("a prediction", () => {
  factContract({
    kind: predictions,
    machine,
    fact: predictionFact,
    publications,
    types,
    event: (placed) => PredictionMade.make(placed),
    published: {
      type: "prediction_made",
      subject: image_sha256,
      data: {
        class: "Demo___Rust",
        probability: 0.75,
        image_sha256,
        image_bytes: 1001,
        model_sha256,
        milliseconds: 12.5,
      },
    },
  })
})
