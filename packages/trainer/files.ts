/**
 * Writes a trained model: model.json and weights.bin in TensorFlow.js format, the classes and
 * the metrics. The output folder appears complete or not at all.
 */
import { existsSync } from "node:fs"
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { type Network, topologyOf, type Weight } from "./network.ts"

/** The suffix of a temporary folder, followed by the process id. */
const partial_suffix = ".partial-"

const isRunning = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // A process of another user is running and cannot be signalled.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** Throws if the folder exists and is not empty: a trained model is never overwritten. */
export const requireFree = async (folder: string) => {
  if (existsSync(folder) && (await readdir(folder)).length > 0) {
    throw new Error(`${folder} already exists and is not empty: choose another folder with --out`)
  }
}

/** Creates the temporary folder, and removes those of killed trainings. */
export const openStaging = async (out: string) => {
  const folder = resolve(out)
  await requireFree(folder)
  const parent = dirname(folder)
  await mkdir(parent, { recursive: true })
  const prefix = `${basename(folder)}${partial_suffix}`
  for (const name of await readdir(parent)) {
    const is_abandoned = name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length)))
    if (is_abandoned) await rm(join(parent, name), { recursive: true, force: true })
  }
  const staging = stagingOf(folder)
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging)
  return staging
}

/** The temporary folder of this process. */
export const stagingOf = (out: string) => `${resolve(out)}${partial_suffix}${process.pid}`

/** Rounds weights to float16, so that the evaluation uses the weights that are written. */
export const halfPrecision = (weights: ReadonlyArray<Weight>): ReadonlyArray<Weight> =>
  weights.map((weight) => ({
    ...weight,
    values: Float32Array.from(new Float16Array(weight.values)),
  }))

const modelJson = (network: Network, weights: ReadonlyArray<Weight>) => ({
  format: "layers-model",
  generatedBy: "almanac plant train",
  convertedBy: null,
  modelTopology: topologyOf(network),
  weightsManifest: [
    {
      paths: ["weights.bin"],
      weights: weights.map(({ name, shape }) => ({
        name,
        shape,
        dtype: "float32",
        quantization: { dtype: "float16", original_dtype: "float32" },
      })),
    },
  ],
})

const jsonText = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

export interface TrainedModel {
  readonly network: Network
  readonly weights: ReadonlyArray<Weight>
  /** Class names by output index. */
  readonly classes: ReadonlyArray<string>
  readonly metrics: unknown
}

/** Writes the four files to the temporary folder. */
export const writeTrained = async (staging: string, trained_model: TrainedModel) => {
  const { network, weights, classes, metrics } = trained_model
  const bytes = weights.map(({ values }) => Buffer.from(new Float16Array(values).buffer))
  await writeFile(join(staging, "weights.bin"), Buffer.concat(bytes), { flush: true })
  const model = `${JSON.stringify(modelJson(network, weights))}\n`
  await writeFile(join(staging, "model.json"), model, { flush: true })
  const indices = Object.fromEntries(classes.map((name, index) => [index, name]))
  await writeFile(join(staging, "class_indices.json"), jsonText(indices), { flush: true })
  await writeFile(join(staging, "metrics.json"), jsonText(metrics), { flush: true })
}

/** Renames the temporary folder to its final name. Throws if that folder exists by now. */
export const publish = async (staging: string, out: string) => {
  const folder = resolve(out)
  await requireFree(folder)
  await rename(staging, folder)
}
