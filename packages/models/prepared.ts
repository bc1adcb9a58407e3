/** What is kept of a model beside its ONNX file, so that a start need not look into it again. */
import { Schema } from "effect"
import type { ModelFormat } from "./model-file.ts"

export const Prepared = Schema.Struct({
  input: Schema.Struct({
    name: Schema.String,
    /** The order of its axes: [N, 224, 224, 3] or [N, 3, 224, 224]. */
    layout: Schema.Literals(["NHWC", "NCHW"]),
    /** How many images it takes at once. */
    batch: Schema.Literals(["any", 1]),
    /** Whether it divides bytes of colour itself, and so wants 0 to 255; false where unknown. */
    has_rescaling: Schema.Boolean,
  }),
  output: Schema.Struct({
    name: Schema.String,
    classes: Schema.Int,
    /** What makes its numbers; `none` where they are anything. */
    activation: Schema.Literals(["softmax", "sigmoid", "none"]),
    /** Whether they are probabilities that sum to one. */
    is_softmax: Schema.Boolean,
    /** Whether it is one number, which says how likely the second of two classes is. */
    is_single: Schema.optionalKey(Schema.Boolean),
  }),
  /** Weights and layers; null of an .onnx, which is not read. */
  parameters: Schema.NullOr(Schema.Int),
  layers: Schema.NullOr(Schema.Int),
})
export type Prepared = typeof Prepared.Type

/** What the process that looks into a model is asked. */
export interface Asked {
  readonly path: string
  readonly format: ModelFormat
  /** Where it may write: an empty folder, and the file that it writes there. */
  readonly folder: string
  readonly onnx_path: string
}

export type Answered = { readonly prepared: Prepared } | { readonly detail: string }
