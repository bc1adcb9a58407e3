/** Opens Keras, tfjs and ONNX image classifiers, and converts them to ONNX. */
import type { dryRun as run } from "./dry-run.ts"

export { checkClasses, readClasses } from "./classes.ts"
export { demo_model } from "./demo.ts"
export { printable } from "./keras/config.ts"
export { type Constant, type Operation, writeOnnx } from "./onnx/writer.ts"
export { ModelUnusable, type OpenedModel, openModel, prepareModel } from "./open-model.ts"
export { weightOf } from "./weight.ts"

/** Runs a prepared model on gray images. Imported on first use, because it loads ONNX Runtime. */
export const dryRun: typeof run = async (...options) =>
  (await import("./dry-run.ts")).dryRun(...options)
