/** The model in use, as `GET /predict/model` returns it. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"

/** The supported file formats. Source: decisions of document 3, plant model. */
const model_formats = ["keras-h5", "keras", "onnx", "tfjs"] as const

export const ModelInfo = Schema.Struct({
  name: Schema.String.annotateKey({
    description: "Name of the model's file, without folder and extension.",
  }),
  format: Schema.Literals(model_formats).annotateKey({
    description: "Format of the model's file.",
  }),
  sha256: Schema.String.annotateKey({ description: "SHA-256 of the model's file, in hex." }),
  bytes: Schema.Int.annotateKey({ description: "Size of the model's file in bytes." }),
  parameters: Schema.NullOr(Schema.Int).annotateKey({
    description: "Number of weights. Null for an ONNX file.",
  }),
  classes: Schema.Array(Schema.String).annotateKey({
    description: "Names of the classes, in the order of the network's output.",
  }),
  is_demo: Schema.Boolean.annotateKey({
    description: "Whether this is the demo model, which recognizes only drawn leaves.",
  }),
  loaded_at: Instant.annotateKey({ description: "Time at which the model was loaded." }),
}).annotate({ identifier: "ModelInfo", description: "The model in use." })
export type ModelInfo = typeof ModelInfo.Type
