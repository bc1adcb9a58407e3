/**
 * Writes what a training made: model.json and weights.bin as TensorFlow.js has them, the classes
 * and the figures. All of it is there under its name, or nothing.
 */
import { existsSync } from "node:fs"
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { type Network, topologyOf, type Weight } from "./network.ts"

/** Where a training writes before it is done; of the process that has this number. */
const partial = ".partial-"

const isRunning = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // A process of another user runs, and may not be asked.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** Throws where something is there already: what was trained is not overwritten. */
export const checkFree = async (folder: string) => {
  if (existsSync(folder) && (await readdir(folder)).length > 0) {
    throw new Error(`${folder} is there already and not empty: give another folder with --out`)
  }
}

/** An empty folder beside the one that is wanted; what a killed training left there goes. */
export const openStaging = async (wanted: string) => {
  const folder = resolve(wanted)
  await checkFree(folder)
  const beside = dirname(folder)
  await mkdir(beside, { recursive: true })
  const begins = `${basename(folder)}${partial}`
  for (const name of await readdir(beside)) {
    const is_left = name.startsWith(begins) && !isRunning(Number(name.slice(begins.length)))
    if (is_left) await rm(join(beside, name), { recursive: true, force: true })
  }
  const staging = stagingOf(folder)
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging)
  return staging
}

/** That folder's name, of this process. */
export const stagingOf = (wanted: string) => `${resolve(wanted)}${partial}${process.pid}`

/** The weights as 16 bits hold them: what is written, and so what is measured. */
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

const text = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

export interface Trained {
  readonly network: Network
  readonly weights: ReadonlyArray<Weight>
  /** By the index of the output. */
  readonly classes: ReadonlyArray<string>
  readonly metrics: unknown
}

/** Writes the four files into the staging folder. */
export const writeTrained = async (staging: string, trained: Trained) => {
  const { network, weights, classes, metrics } = trained
  const bytes = weights.map(({ values }) => Buffer.from(new Float16Array(values).buffer))
  await writeFile(join(staging, "weights.bin"), Buffer.concat(bytes), { flush: true })
  const model = `${JSON.stringify(modelJson(network, weights))}\n`
  await writeFile(join(staging, "model.json"), model, { flush: true })
  const indices = Object.fromEntries(classes.map((name, index) => [index, name]))
  await writeFile(join(staging, "class_indices.json"), text(indices), { flush: true })
  await writeFile(join(staging, "metrics.json"), text(metrics), { flush: true })
}

/** Gives the staging folder its name. Throws where that was taken meanwhile. */
export const publish = async (staging: string, wanted: string) => {
  const folder = resolve(wanted)
  await checkFree(folder)
  await rename(staging, folder)
}
