/** The description cached with a model's ONNX file, and the messages of the conversion process. */
import { Schema } from "effect"
import type { ModelFormat } from "./model-file.ts"

export const PreparedModel = Schema.Struct({
  input: Schema.Struct({
    name: Schema.String,
    /** [N, 224, 224, 3] or [N, 3, 224, 224]. */
    layout: Schema.Literals(["NHWC", "NCHW"]),
    /** The batch size that it supports. */
    batch: Schema.Literals(["any", 1]),
    /** Whether it rescales bytes itself, and so expects 0 to 255; false if unknown. */
    has_rescaling: Schema.Boolean,
  }),
  output: Schema.Struct({
    name: Schema.String,
    classes: Schema.Int,
    /** The last activation; `none` for logits. */
    activation: Schema.Literals(["softmax", "sigmoid", "none"]),
    /** Whether the outputs are probabilities that sum to one. */
    is_softmax: Schema.Boolean,
    /** Whether the output is one number, the probability of the second of two classes. */
    is_single: Schema.optionalKey(Schema.Boolean),
  }),
  /** The numbers of weights and layers; null for an .onnx. */
  parameters: Schema.NullOr(Schema.Int),
  layers: Schema.NullOr(Schema.Int),
})
export type PreparedModel = typeof PreparedModel.Type

/** The request to the conversion process. */
export interface ConversionRequest {
  readonly path: string
  readonly format: ModelFormat
  /** An empty folder for temporary files, and the file to write. */
  readonly folder: string
  readonly onnx_path: string
}

export type ConversionResponse = { readonly prepared: PreparedModel } | { readonly detail: string }
