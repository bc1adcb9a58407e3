/** The responses of plant disease prediction. Source: document 3 §2 C; issue 7. */
import { Schema } from "effect"

export const ClassProbability = Schema.Struct({
  class: Schema.String.annotateKey({ description: "Name of the class." }),
  probability: Schema.Finite.annotateKey({ description: "Probability of the class, 0 to 1." }),
}).annotate({ identifier: "ClassProbability", description: "A class and its probability." })
export type ClassProbability = typeof ClassProbability.Type

/** Only `prediction` is always present; the other fields are optional. */
export const Prediction = Schema.Struct({
  prediction: Schema.String.annotateKey({
    description: "Name of the most likely class, such as `Tomato___Late_blight`.",
  }),
  predictions: Schema.optionalKey(Schema.Array(ClassProbability)).annotateKey({
    description: "Only with `top_k`: the most likely classes, the most likely first.",
  }),
  heatmap: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "Only with `explain=heatmap`: the image, coloured where it supports the class. A PNG of " +
      "224 " +
      "by 224 pixels as a `data:image/png;base64,` URL.",
  }),
  auto_orient: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "Only with `explain=heatmap`: whether the image was rotated by its EXIF orientation first " +
      "(`plant.auto_orient`).",
  }),
}).annotate({ identifier: "Prediction", description: "The predicted class of the image." })
export type Prediction = typeof Prediction.Type

const name = Schema.String.annotateKey({
  description: "Name of the file in the form. Empty if it has none.",
})

/** One image of a batch: its class, or an error. */
export const BatchItem = Schema.Union([
  Schema.Struct({
    name,
    prediction: Schema.String.annotateKey({ description: "Name of the most likely class." }),
  }),
  Schema.Struct({
    name,
    error: Schema.String.annotateKey({ description: "Why this image could not be classified." }),
  }),
])
export type BatchItem = typeof BatchItem.Type

/** In the order of the files. */
export const Predictions = Schema.Struct({
  predictions: Schema.Array(BatchItem).annotateKey({
    description: "One entry for each image, in the order of the form.",
  }),
}).annotate({ identifier: "Predictions", description: "The predicted classes of the images." })
