/** The responses of plant disease prediction. Source: document 3 §2 C; issue 7. */
import { Schema } from "effect"

export const ClassProbability = Schema.Struct({
  class: Schema.String.annotateKey({ description: "As the model's index names it." }),
  probability: Schema.Finite.annotateKey({ description: "0 to 1." }),
})
export type ClassProbability = typeof ClassProbability.Type

/** Only `prediction` is always present; the other fields are optional. */
export const Prediction = Schema.Struct({
  prediction: Schema.String.annotateKey({ description: "The likeliest class." }),
  predictions: Schema.optionalKey(Schema.Array(ClassProbability)).annotateKey({
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

/** One image of a batch: its class, or an error. */
export const BatchItem = Schema.Union([
  Schema.Struct({ name, prediction: Schema.String }),
  Schema.Struct({ name, error: Schema.String }),
])
export type BatchItem = typeof BatchItem.Type

/** In the order of the files. */
export const Predictions = Schema.Struct({ predictions: Schema.Array(BatchItem) })
