/**
 * Opens a model file and its classes: Keras `.h5` or `.keras`, tfjs `model.json`, or `.onnx`. The
 * result is an ONNX file with a description of its input and output.
 *
 * Source: document 3 §1 C; decisions of document 3, plant model; issue 7.
 */
import { Effect, Schema } from "effect"
import { checkClasses, readClasses } from "./classes.ts"
import { cachedConversion } from "./conversion-cache.ts"
import { demo_model } from "./demo.ts"
import { isModelError, reject } from "./model-error.ts"
import { type ModelFile, modelFile } from "./model-file.ts"
import type { PreparedModel } from "./prepared-model.ts"

/** The model or its class file cannot be used. `detail` is one line that says how to fix it. */
export class ModelUnusable extends Schema.TaggedError<ModelUnusable>()("ModelUnusable", {
  detail: Schema.String,
}) {}

interface ModelInfo extends Omit<ModelFile, "path"> {
  /** The number of weights; null for an .onnx, whose weights are not counted. */
  readonly parameters: number | null
  /** Class names by output index. */
  readonly classes: ReadonlyArray<string>
  /** Whether all classes are the demo model's. */
  readonly is_demo: boolean
}

export interface OpenedModel {
  /** The file for ONNX Runtime; for an .onnx the file itself. */
  readonly onnx_path: string
  readonly info: ModelInfo
  readonly input: PreparedModel["input"]
  readonly output: PreparedModel["output"]
  /** The number of layers; null for an .onnx. */
  readonly layers: number | null
}

export interface ModelPaths {
  readonly model_path: string
  /** If empty, the class file next to the model. */
  readonly classes_path: string
  /** A folder used for converted models only. */
  readonly cache_dir: string
}

const isDemo = (classes: ReadonlyArray<string>) => classes.every((name) => name.startsWith("Demo"))

/** Rejects the demo model with other class names: its predictions would look real. */
const checkDemo = (model_path: string, classes: ReadonlyArray<string>) => {
  if (model_path !== demo_model || isDemo(classes)) return
  reject("plant.classes is only for your own network: also set plant.model.")
}

const asModelUnusable = (error: unknown) =>
  new ModelUnusable({
    detail: isModelError(error) ? error.detail : `The model cannot be opened: ${String(error)}`,
  })

/** Inspects and converts a model without its classes. */
export const prepareModel = (model_path: string, cache_dir: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const file = await modelFile(model_path)
      return { file, ...(await cachedConversion(file, cache_dir, signal)) }
    },
    catch: asModelUnusable,
  })

/** Opens the model. Converts it once per file hash, in a child process. */
export const openModel = Effect.fnUntraced(function* ({
  model_path,
  classes_path,
  cache_dir,
}: ModelPaths): Effect.fn.Return<OpenedModel, ModelUnusable> {
  const read = () => readClasses(classes_path, model_path)
  const classes = yield* Effect.tryPromise({ try: read, catch: asModelUnusable })
  const { file, prepared, onnx_path } = yield* prepareModel(model_path, cache_dir)
  const { input, output, parameters, layers } = prepared
  yield* Effect.try({
    try: () => {
      checkClasses(classes, output.classes)
      checkDemo(model_path, classes)
    },
    catch: asModelUnusable,
  })
  const { name, format, sha256, bytes } = file
  const is_demo = isDemo(classes)
  return {
    onnx_path,
    info: { name, format, sha256, bytes, parameters, classes, is_demo },
    input,
    output,
    layers,
  }
})
