/** Networks with random weights, in the format that users have and as the service opens them. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { openModel } from "#models"

const classes = 38
const names = Array.from({ length: classes }, (_, index) => `class ${index}`)

/** Writes a model's class file next to it, where the service looks for it. */
const withClasses = (model_path: string) => {
  writeFileSync(join(dirname(model_path), "class_indices.json"), JSON.stringify(names))
  return model_path
}

/** The tutorial's network, 47.8 million weights nearly all in one layer, as a Keras .h5. */
export const writeTutorial = async (folder: string) => {
  const { writeTutorialNetwork } = await import("../../packages/models/test/tutorial-network.ts")
  mkdirSync(folder)
  const path = join(folder, "tutorial.h5")
  await writeTutorialNetwork(path)
  return withClasses(path)
}

/** MobileNetV2 as a model.json, as Keras exports it or with its normalizations folded. */
export const writeMobileNet = async (folder: string, is_folded: boolean) => {
  const { setBackend } = await import("@tensorflow/tfjs-core")
  await import("@tensorflow/tfjs-backend-wasm")
  const { mobileNet } = await import("../../packages/models/test/mobile-network.ts")
  const { writeTfjs } = await import("../../packages/models/test/tfjs-network.ts")
  await setBackend("wasm")
  const model = mobileNet(is_folded)
  const path = await writeTfjs(model, folder)
  model.dispose()
  return withClasses(path)
}

/** Opens a model as the service does; bare ONNX Runtime uses the resulting ONNX file too. */
export const openNetwork = (model_path: string) =>
  Effect.runPromise(
    openModel({ model_path, classes_path: "", cache_dir: join(dirname(model_path), "cache") }),
  )
