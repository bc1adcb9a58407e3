/** The model in use, as `GET /predict/model` returns it. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"

/** The supported file formats. Source: decisions of document 3, plant model. */
const model_formats = ["keras-h5", "keras", "onnx", "tfjs"] as const

export const ModelInfo = Schema.Struct({
  name: Schema.String.annotateKey({ description: "Its file's name, without folder and ending." }),
  format: Schema.Literals(model_formats).annotateKey({ description: "How it was handed in." }),
  sha256: Schema.String.annotateKey({ description: "Of the file that was handed in, in hex." }),
  bytes: Schema.Int.annotateKey({ description: "Size of that file." }),
  parameters: Schema.NullOr(Schema.Int).annotateKey({
    description: "Weights it has; null of an ONNX file, which is not read.",
  }),
  classes: Schema.Array(Schema.String).annotateKey({
    description: "Class names by the index of the output.",
  }),
  is_demo: Schema.Boolean.annotateKey({ description: "Whether it is the demo model." }),
  loaded_at: Instant.annotateKey({ description: "When this process had it ready." }),
})
export type ModelInfo = typeof ModelInfo.Type
