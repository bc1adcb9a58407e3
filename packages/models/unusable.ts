/** Why a model or its classes cannot be used: one line, which says what to do about it. */
import { Schema } from "effect"

export class ModelUnusable extends Schema.TaggedError<ModelUnusable>()("ModelUnusable", {
  detail: Schema.String,
}) {}
