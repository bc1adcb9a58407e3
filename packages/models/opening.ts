/**
 * Opens a model as its user has it: a Keras `.h5` or `.keras`, a tfjs `model.json` or an `.onnx`,
 * with its classes; what comes out is a file that ONNX Runtime opens, and what is to know of it.
 *
 * Source: document 3 §1 C; decisions of document 3, plant model; issue 7.
 */
import { Effect } from "effect"
import { checkClasses, readClasses } from "./classes.ts"
import { demo_model } from "./demo.ts"
import { type ModelFile, modelFile } from "./model-file.ts"
import { preparation } from "./preparation.ts"
import type { Prepared } from "./prepared.ts"
import { isRefusal, unusable } from "./refusal.ts"
import { ModelUnusable } from "./unusable.ts"

export { ModelUnusable }

interface ModelFacts extends Omit<ModelFile, "path"> {
  /** Weights it has; null of an .onnx, which is not read. */
  readonly parameters: number | null
  /** Names by the index of the output. */
  readonly classes: ReadonlyArray<string>
  /** Whether it is the demo model. */
  readonly is_demo: boolean
}

export interface OpenedModel {
  /** What ONNX Runtime opens: of an .onnx that file itself. */
  readonly onnx_path: string
  readonly info: ModelFacts
  readonly input: Prepared["input"]
  readonly output: Prepared["output"]
  /** Null of an .onnx, which is not read. */
  readonly layers: number | null
}

export interface ModelPaths {
  readonly model_path: string
  /** Empty: the file beside the model. */
  readonly classes_path: string
  /** A folder of its own, where converted models are kept. */
  readonly cache_dir: string
}

const isDemo = (classes: ReadonlyArray<string>) => classes.every((name) => name.startsWith("Demo"))

/** The demo model under the names of somebody's plants would be believed. */
const checkDemo = (model_path: string, classes: ReadonlyArray<string>) => {
  if (model_path !== demo_model || isDemo(classes)) return
  unusable("plant.classes names the classes of your own network: set plant.model to it too.")
}

const told = (error: unknown) =>
  new ModelUnusable({
    detail: isRefusal(error) ? error.detail : `The model cannot be opened: ${String(error)}`,
  })

/** Looks into a model without its classes. */
export const prepareModel = (model_path: string, cache_dir: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const file = await modelFile(model_path)
      return { file, ...(await preparation(file, cache_dir, signal)) }
    },
    catch: told,
  })

/** Opens the model; converts it in a process of its own, once for each file by its hash. */
export const openModel = Effect.fnUntraced(function* ({
  model_path,
  classes_path,
  cache_dir,
}: ModelPaths): Effect.fn.Return<OpenedModel, ModelUnusable> {
  const reading = () => readClasses(classes_path, model_path)
  const classes = yield* Effect.tryPromise({ try: reading, catch: told })
  const { file, prepared, onnx_path } = yield* prepareModel(model_path, cache_dir)
  const { input, output, parameters, layers } = prepared
  yield* Effect.try({
    try: () => {
      checkClasses(classes, output.classes)
      checkDemo(model_path, classes)
    },
    catch: told,
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
