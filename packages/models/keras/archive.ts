/**
 * Reads a `.keras` file: a zip of the configuration and of an HDF5 with the weights, which are
 * named by class and counter there, not by layer.
 *
 * Source: plant facts 3; keras-team/keras, saving_lib.py of 2.13 to 3.15.
 */
import { join } from "node:path"
import { isZipFailure, openZip, type Zip } from "#zip"
import type { Network } from "../network.ts"
import { unusable } from "../refusal.ts"
import { isRecord, type Layer, type Model, readConfig } from "./config.ts"
import { type Hdf5, openHdf5 } from "./hdf5.ts"

/** A network has a handful; a checkpoint with assets some hundred. */
const entries_max = 10_000
/** The largest configuration that Keras's own networks have is 1 MB. */
const config_bytes_max = 64 * 2 ** 20
/** More than the weights that an ONNX file holds, with an optimizer's. */
const weights_bytes_max = 8 * 2 ** 30

/** As Keras makes a folder's name of a class's. */
const snakeCase = (name: string) =>
  name
    .replaceAll(/\W+/g, "")
    .replaceAll(/(.)([A-Z][a-z]+)/g, "$1_$2")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()

/** The order in which a class makes its variables. */
const orderOf = ({ kind, config }: Layer): ReadonlyArray<string> => {
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

/** What is known of the places of variables while they are looked for. */
interface Search {
  readonly file: Hdf5
  readonly found: Map<Layer, string>
  /** Whether layers with variables count twice where folders of one name are numbered. */
  readonly is_twofold: boolean
}

/** Finds where the variables of each layer are, and says whether there are any. */
const findFolders = (search: Search, { layers }: Model, at: string): boolean => {
  const { file, found, is_twofold } = search
  const counts = new Map<string, number>()
  // Keras 2.13 and 2.14 name the folder after what holds the layers.
  const inner = ["layers", "_layer_checkpoint_dependencies"].find((name) => file.has(at + name))
  const folder = `${at}${inner ?? "layers"}/`
  let has_some = false
  for (const layer of layers) {
    const kind = layer.kind === "Model" ? "Functional" : layer.kind
    const name = snakeCase(kind)
    const count = counts.get(name) ?? 0
    const place = `${folder}${name}${count === 0 ? "" : `_${count}`}/`
    found.set(layer, place)
    const { model } = layer
    const has_any = model ? findFolders(search, model, place) : file.has(`${place}vars/0`)
    counts.set(name, count + (is_twofold && has_any ? 2 : 1))
    has_some ||= has_any
  }
  return has_some
}

/** Keras 2.13 goes through layers with variables once more, and numbers what it passes over. */
const twofold_version = /^2\.1[23]\./

const readArchive = async (zip: Zip, folder: string): Promise<Network> => {
  const config = await zip.read("config.json", config_bytes_max)
  if (config === undefined) return unusable("The zip archive is no .keras file: no config.json.")
  const model = readConfig(JSON.parse(config.toString("utf8")))
  const about = await zip.read("metadata.json", config_bytes_max)
  const metadata: unknown = JSON.parse(about?.toString("utf8") ?? "null")
  const version = isRecord(metadata) ? String(metadata.keras_version) : ""
  const unpacked = join(folder, "weights.h5")
  if (!(await zip.extract("model.weights.h5", unpacked, weights_bytes_max))) {
    return unusable("The .keras file holds no model.weights.h5.")
  }
  const file = await openHdf5(unpacked)
  const found = new Map<Layer, string>()
  findFolders({ file, found, is_twofold: twofold_version.test(version) }, model, "")
  return {
    model,
    is_keras_3: /^[3-9]/.test(version),
    weight: (layer, ...names) => {
      const index = orderOf(layer).findIndex((name) => names.includes(name))
      const is_brain = layer.config.dtype === "bfloat16"
      return index < 0 ? undefined : file.weight(`${found.get(layer)}vars/${index}`, is_brain)
    },
    close: file.close,
  }
}

/** Reads `path`; `folder` is where the weights are unpacked. Throws a refusal. */
export const readKerasZip = async (path: string, folder: string): Promise<Network> => {
  let zip: Zip | undefined
  try {
    zip = await openZip(path, entries_max)
    return await readArchive(zip, folder)
  } catch (error) {
    if (!isZipFailure(error)) throw error
    return error.reason === "too large"
      ? unusable(`Its ${error.message}.`)
      : unusable("The .keras file is damaged: it is no whole zip archive.")
  } finally {
    zip?.close()
  }
}
