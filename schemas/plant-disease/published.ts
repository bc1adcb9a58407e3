/**
 * The published events of plant disease prediction.
 *
 * Types, fields and their meanings never change and are never removed. An image is published only
 * as its hash. Source: DECISIONS "published events".
 */
import { Schema } from "effect"
import type { PublishedTypes } from "#schemas/published.ts"

const described = (description: string) => ({ description })

export const published = {
  prediction_made: {
    aggregate: "prediction",
    subject: "the SHA-256 of the image",
    when: "An image was classified.",
    data: Schema.Struct({
      node_id: Schema.String.annotateKey(described("ID of the node that made the prediction.")),
      class: Schema.String.annotateKey(
        described("Name of the predicted class in the model's class index."),
      ),
      probability: Schema.Finite.annotateKey(described("Probability of the class, 0 to 1.")),
      image_sha256: Schema.String.annotateKey(described("SHA-256 of the uploaded file, in hex.")),
      image_bytes: Schema.Int.annotateKey(described("Size of the uploaded file in bytes.")),
      model_sha256: Schema.String.annotateKey(described("SHA-256 of the model's file, in hex.")),
      milliseconds: Schema.Finite.annotateKey(
        described("Time from the complete upload to the response, in milliseconds."),
      ),
    }),
  },
} satisfies PublishedTypes
