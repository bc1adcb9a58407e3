/** Opens a model that a command names, with a temporary folder for its conversion. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Effect, Schema } from "effect"
import { Argument } from "effect/cli"

/** The model cannot be used, or the result cannot be written. */
export class NotUsable extends Schema.TaggedError<NotUsable>()("NotUsable", {
  message: Schema.String,
}) {}

export const modelArgument = Argument.String("model").pipe(
  Argument.withDescription("Model: Keras .h5 or .keras, tfjs model.json, or .onnx"),
)

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "almanac-plant-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
)

/** Inspects the model, and converts it unless it is an .onnx. */
export const preparedModel = Effect.fnUntraced(function* (model: string) {
  const { prepareModel } = yield* Effect.promise(() => import("#models"))
  const prepared = prepareModel(resolve(model), yield* folder)
  return yield* Effect.mapError(prepared, ({ detail }) => new NotUsable({ message: detail }))
})
