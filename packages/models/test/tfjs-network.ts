/** Creates TensorFlow.js networks with seeded weights and saves them in its format. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as tf from "@tensorflow/tfjs-core"
import type * as layers from "@tensorflow/tfjs-layers"

export type Add = (x: layers.SymbolicTensor) => layers.SymbolicTensor
export const through =
  (...all: ReadonlyArray<layers.layers.Layer>): Add =>
  (x) =>
    // A layer returns one tensor for one tensor.
    all.reduce((value, layer) => layer.apply(value) as layers.SymbolicTensor, x)

const seed = 20_261_122

/** Sets seeded weights that keep values near one; variances are positive. */
export const seeded = (model: layers.LayersModel) => {
  const values = model.weights.map((weight, index) => {
    const shape = weight.shape.map(Number)
    const inputs = Math.max(
      shape.slice(0, -1).reduce((product, side) => product * side, 1),
      1,
    )
    const is_positive = /variance|gamma/.test(weight.name)
    const reach = shape.length > 1 ? Math.sqrt(6 / inputs) : 0.3
    return is_positive
      ? tf.randomUniform(shape, 0.5, 1.5, "float32", seed + index)
      : tf.randomUniform(shape, -reach, reach, "float32", seed + index)
  })
  model.setWeights(values)
  return model
}

/** The type of the stored weights. */
export type WeightType = "float32" | "float16" | "uint8"

/**
 * Saves the model to a new folder, with its weights in two files that are split in the middle of a
 * value. Returns the path of model.json.
 */
export const writeTfjs = async (
  model: layers.LayersModel,
  folder: string,
  weight_type: WeightType = "float32",
) => {
  mkdirSync(folder)
  await model.save(
    tf.io.withSaveHandler(async ({ modelTopology, weightSpecs = [], weightData }) => {
      const data = Buffer.from(tf.io.CompositeArrayBuffer.join(weightData))
      const { specs, bytes } =
        weight_type === "float32"
          ? { specs: weightSpecs, bytes: data }
          : quantize(weightSpecs, data, weight_type)
      const middle = Math.floor(bytes.length / 2) + 1
      writeFileSync(join(folder, "group1-shard1of2.bin"), bytes.subarray(0, middle))
      writeFileSync(join(folder, "group1-shard2of2.bin"), bytes.subarray(middle))
      const paths = ["group1-shard1of2.bin", "group1-shard2of2.bin"]
      const weightsManifest = [{ paths, weights: specs }]
      const json = { format: "layers-model", modelTopology, weightsManifest }
      writeFileSync(join(folder, "model.json"), JSON.stringify(json))
      return { modelArtifactsInfo: { dateSaved: new Date(0), modelTopologyType: "JSON" } }
    }),
  )
  return join(folder, "model.json")
}

/** Quantizes weights like the converter of tfjs. */
const quantize = (
  weightSpecs: ReadonlyArray<tf.io.WeightsManifestEntry>,
  data: Buffer,
  dtype: "float16" | "uint8",
) => {
  const specs: Array<tf.io.WeightsManifestEntry> = []
  const parts: Array<Buffer> = []
  let place = 0
  for (const spec of weightSpecs) {
    const count = spec.shape.reduce((product, side) => product * side, 1)
    const values = new Float32Array(Uint8Array.from(data.subarray(place, place + count * 4)).buffer)
    place += count * 4
    const lowest = Math.min(...values)
    const scale = dtype === "uint8" ? (Math.max(...values) - lowest) / 255 || 1 : 1
    const quantization = dtype === "uint8" ? { dtype, scale, min: lowest } : { dtype }
    specs.push({ ...spec, quantization })
    parts.push(
      dtype === "uint8"
        ? Buffer.from(Uint8Array.from(values, (value) => Math.round((value - lowest) / scale)))
        : Buffer.from(Uint16Array.from(values, halfOf).buffer),
    )
  }
  return { specs, bytes: Buffer.concat(parts) }
}

/** Truncates to a float16; the value must be in its normal range. */
const halfOf = (value: number) => {
  const [bits = 0] = new Uint32Array(Float32Array.of(value).buffer)
  const exponent = ((bits >>> 23) & 255) - 112
  return exponent <= 0 ? 0 : ((bits >>> 16) & 0x8000) | (exponent << 10) | ((bits >>> 13) & 1023)
}
