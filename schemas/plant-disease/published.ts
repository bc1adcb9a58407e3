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
      node_id: Schema.String.annotateKey(described("The node that predicted it.")),
      class: Schema.String.annotateKey(described("The class, as the model's index names it.")),
      probability: Schema.Finite.annotateKey(described("Its probability, 0 to 1.")),
      image_sha256: Schema.String.annotateKey(
        described("SHA-256 of the file as it was uploaded, in hex."),
      ),
      image_bytes: Schema.Int.annotateKey(described("Size of that file, in bytes.")),
      model_sha256: Schema.String.annotateKey(described("SHA-256 of the model's file, in hex.")),
      milliseconds: Schema.Finite.annotateKey(
        described("From the whole image to the answer, in milliseconds."),
      ),
    }),
  },
} satisfies PublishedTypes
