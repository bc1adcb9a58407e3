/** What plant disease prediction tells subscribers, in the words of its published types. */
import { PredictionEvent } from "#events/plant-disease/prediction.ts"
import { publication, type ToldOf } from "#projections/published-events.ts"
import type { published as types } from "#schemas/plant-disease/published.ts"

type Told = ToldOf<typeof types>

const prediction = publication({
  part: "plant-disease.prediction",
  event: PredictionEvent,
  tell: (event, { id: node_id }): Told => {
    const { probability, image_sha256, image_bytes, model_sha256, milliseconds } = event
    const { at, actor, request_id, correlation_id } = event
    return {
      type: "prediction_made",
      subject: image_sha256,
      data: {
        node_id,
        class: event.class,
        probability,
        image_sha256,
        image_bytes,
        model_sha256,
        milliseconds,
      },
      origin: { at, actor, request_id, correlation_id },
    }
  },
})

/** Every kind of plant disease prediction that publishes. */
export const published = [prediction]
