/** Published events of plant disease prediction. */
import { PredictionEvent } from "#events/plant-disease/prediction.ts"
import { type EventDraftOf, publication } from "#projections/published-events.ts"
import type { published as types } from "#schemas/plant-disease/published.ts"

type Draft = EventDraftOf<typeof types>

const prediction = publication({
  part: "plant-disease.prediction",
  event: PredictionEvent,
  toDraft: (event, { id: node_id }): Draft => {
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

/** All publications of plant disease prediction. */
export const published = [prediction]
