/**
 * Reads a `.keras` file: a ZIP archive of the configuration and an HDF5 file with the weights,
 * which are named by class and counter, not by layer.
 *
 * Source: plant facts 3; keras-team/keras, saving_lib.py of 2.13 to 3.15.
 */
import { join } from "node:path"
import { isZipFailure, openZip, type Zip } from "#zip"
import { reject } from "../model-error.ts"
import type { Network } from "../network.ts"
import { isRecord, type Layer, type Model, readConfig } from "./config.ts"
import { type Hdf5, openHdf5 } from "./hdf5.ts"

/** A network has a handful of entries, a checkpoint with assets a few hundred. */
const entries_max = 10_000
/** The largest configuration among Keras's own networks is 1 MB. */
const config_bytes_max = 64 * 2 ** 20
/** More than an ONNX file can hold, plus the optimizer's state. */
const weights_bytes_max = 8 * 2 ** 30

/** Keras's conversion of a class name to a folder name. */
const toSnakeCase = (name: string) =>
  name
    .replaceAll(/\W+/g, "")
    .replaceAll(/(.)([A-Z][a-z]+)/g, "$1_$2")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()

/** The order in which a layer class creates its variables. */
const variableOrder = ({ kind, config }: Layer): ReadonlyArray<string> => {
  const scale = config.scale === false ? [] : ["gamma"]
  const centre = config.center === false ? [] : ["beta"]
  switch (kind) {
    case "DepthwiseConv2D":
      return ["depthwise_kernel", "bias"]
    case "SeparableConv2D":
      return ["depthwise_kernel", "pointwise_kernel", "bias"]
    case "BatchNormalization":
      return [...scale, ...centre, "moving_mean", "moving_variance"]
    case "LayerNormalization":
      return [...scale, ...centre]
    case "Normalization":
      return ["mean", "variance"]
    case "PReLU":
      return ["alpha"]
    case "LayerScale":
      return ["gamma"]
    default:
      return ["kernel", "bias"]
  }
}

interface Search {
  readonly file: Hdf5
  readonly found: Map<Layer, string>
  /** Whether layers with variables count twice in the numbering of folders. */
  readonly counts_twice: boolean
}

/** Records the folder of each layer. Returns whether any layer has variables. */
const locateVariables = (search: Search, { layers }: Model, prefix: string): boolean => {
  const { file, found, counts_twice: is_twofold } = search
  const counts = new Map<string, number>()
  // Keras 2.13 and 2.14 name the folder after an internal attribute.
  const inner = ["layers", "_layer_checkpoint_dependencies"].find((name) => file.has(prefix + name))
  const folder = `${prefix}${inner ?? "layers"}/`
  let has_variables = false
  for (const layer of layers) {
    const kind = layer.kind === "Model" ? "Functional" : layer.kind
    const name = toSnakeCase(kind)
    const count = counts.get(name) ?? 0
    const path = `${folder}${name}${count === 0 ? "" : `_${count}`}/`
    found.set(layer, path)
    const { model } = layer
    const layer_has_variables = model
      ? locateVariables(search, model, path)
      : file.has(`${path}vars/0`)
    counts.set(name, count + (is_twofold && layer_has_variables ? 2 : 1))
    has_variables ||= layer_has_variables
  }
  return has_variables
}

/** Keras 2.12 and 2.13 visit layers with variables twice and count both visits. */
const twice_counting_version = /^2\.1[23]\./

const readArchive = async (zip: Zip, folder: string): Promise<Network> => {
  const config = await zip.read("config.json", config_bytes_max)
  if (config === undefined)
    return reject("The ZIP archive is not a .keras file: it has no config.json.")
  const model = readConfig(JSON.parse(config.toString("utf8")))
  const metadata_bytes = await zip.read("metadata.json", config_bytes_max)
  const metadata: unknown = JSON.parse(metadata_bytes?.toString("utf8") ?? "null")
  const version = isRecord(metadata) ? String(metadata.keras_version) : ""
  const unpacked = join(folder, "weights.h5")
  if (!(await zip.extract("model.weights.h5", unpacked, weights_bytes_max))) {
    return reject("The .keras file contains no model.weights.h5.")
  }
  const file = await openHdf5(unpacked)
  const found = new Map<Layer, string>()
  locateVariables({ file, found, counts_twice: twice_counting_version.test(version) }, model, "")
  return {
    model,
    is_keras_3: /^[3-9]/.test(version),
    weight: (layer, ...names) => {
      const index = variableOrder(layer).findIndex((name) => names.includes(name))
      const is_bfloat16 = layer.config.dtype === "bfloat16"
      return index < 0 ? undefined : file.weight(`${found.get(layer)}vars/${index}`, is_bfloat16)
    },
    close: file.close,
  }
}

/** Reads `path`; the weights are extracted to `folder`. Throws a ModelError. */
export const readKerasZip = async (path: string, folder: string): Promise<Network> => {
  let zip: Zip | undefined
  try {
    zip = await openZip(path, entries_max)
    return await readArchive(zip, folder)
  } catch (error) {
    if (!isZipFailure(error)) throw error
    return error.reason === "too large"
      ? reject(`Its ${error.message}.`)
      : reject("The .keras file is damaged: it is not a complete ZIP archive.")
  } finally {
    zip?.close()
  }
}
