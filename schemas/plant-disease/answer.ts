/** What plant disease prediction answers. Source: document 3 §2 C; issue 7. */
import { Schema } from "effect"

export const Likely = Schema.Struct({
  class: Schema.String.annotateKey({ description: "As the model's index names it." }),
  probability: Schema.Finite.annotateKey({ description: "0 to 1." }),
})
export type Likely = typeof Likely.Type

/** The documented answer is `prediction` alone; the others are there where they were asked for. */
export const Prediction = Schema.Struct({
  prediction: Schema.String.annotateKey({ description: "The likeliest class." }),
  predictions: Schema.optionalKey(Schema.Array(Likely)).annotateKey({
    description: "With `top_k`: the likeliest classes first; of equals the one of lower index.",
  }),
  heatmap: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "With `explain=heatmap`: where the image speaks for its class, over the image; a PNG of " +
      "224 by 224 pixels as data:image/png;base64.",
  }),
  auto_orient: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "With `heatmap`: whether the network saw the image turned as its EXIF orientation says, " +
      "and the heat map with it.",
  }),
})
export type Prediction = typeof Prediction.Type

const name = Schema.String.annotateKey({ description: "The file's name; empty if it has none." })

/** One of a batch: its class, or why there is none. */
export const OfBatch = Schema.Union([
  Schema.Struct({ name, prediction: Schema.String }),
  Schema.Struct({ name, error: Schema.String }),
])
export type OfBatch = typeof OfBatch.Type

/** By the order of the files. */
export const Predictions = Schema.Struct({ predictions: Schema.Array(OfBatch) })
