/** Models of other tools: opened, checked, and converted to a file for ONNX Runtime. */
import type { dryRun as run } from "./dry-run.ts"

export { checkClasses, readClasses } from "./classes.ts"
export { demo_model } from "./demo.ts"
export { printable } from "./keras/config.ts"
export { type Constant, type Operation, writeOnnx } from "./onnx/writer.ts"
export { type OpenedModel, openModel, prepareModel } from "./opening.ts"
export { ModelUnusable } from "./unusable.ts"
export { weightOf } from "./weight.ts"

/** Runs a prepared model on gray images. It loads ONNX Runtime, which nothing else here does. */
export const dryRun: typeof run = async (...options) =>
  (await import("./dry-run.ts")).dryRun(...options)
