/**
 * Reads a Keras `.h5`, as Keras 2 and 3 write them: the configuration in an attribute, the weights
 * in a group for each layer of the outermost model. The optimizer's are never read.
 *
 * Source: plant facts 3; keras-team/keras, legacy_h5_format.py.
 */

import { byName, type NamedWeight, type Network } from "../network.ts"
import { export_onnx, unusable } from "../refusal.ts"
import { everyLayer, readConfig } from "./config.ts"
import { type Hdf5, openHdf5 } from "./hdf5.ts"

/** Reads `path`. Throws a refusal, or whatever h5wasm throws of a damaged file. */
export const readKerasH5 = async (path: string): Promise<Network> => {
  const file = await openHdf5(path)
  const configuration = file.text("", "model_config")
  if (configuration === undefined) return unusable(reasonOf(file))
  const model = readConfig(JSON.parse(configuration))
  const brains = new Set(
    [...everyLayer(model)].flatMap(({ name, config }) => (config.dtype === "bfloat16" ? name : [])),
  )
  const named = file.texts("model_weights", "layer_names").flatMap((group) =>
    file.texts(`model_weights/${group}`, "weight_names").map(
      (name): NamedWeight => ({
        group,
        name,
        weight: () => file.weight(`model_weights/${group}/${name}`, brains.has(group)),
      }),
    ),
  )
  const find = byName(named)
  return {
    model,
    is_keras_3: /^[3-9]/.test(file.text("", "keras_version") ?? ""),
    weight: (layer, ...names) => {
      for (const name of names) {
        const found = find(layer, name)
        if (found !== undefined) return found
      }
      return undefined
    },
    close: file.close,
  }
}

const reasonOf = (file: Hdf5) =>
  file.texts("", "layer_names").length > 0 || file.has("layers") || file.has("model_weights")
    ? "The .h5 file holds weights only, and not what they are of: save the whole model " +
      "(model.save), or " +
      export_onnx
    : "The .h5 file holds no Keras model."
