/**
 * Reads a Keras `.h5` file of Keras 2 or 3: the configuration is an attribute, the weights are in
 * one group per layer of the outermost model. The optimizer's state is not read.
 *
 * Source: plant facts 3; keras-team/keras, legacy_h5_format.py.
 */

import { export_advice, reject } from "../model-error.ts"
import { type NamedWeight, type Network, weightFinder } from "../network.ts"
import { allLayers, readConfig } from "./config.ts"
import { type Hdf5, openHdf5 } from "./hdf5.ts"

/** Reads `path`. Throws a ModelError, or h5wasm's error for a damaged file. */
export const readKerasH5 = async (path: string): Promise<Network> => {
  const file = await openHdf5(path)
  const configuration = file.text("", "model_config")
  if (configuration === undefined) return reject(reasonOf(file))
  const model = readConfig(JSON.parse(configuration))
  const bfloat16_layers = new Set(
    [...allLayers(model)].flatMap(({ name, config }) => (config.dtype === "bfloat16" ? name : [])),
  )
  const named = file.texts("model_weights", "layer_names").flatMap((group) =>
    file.texts(`model_weights/${group}`, "weight_names").map(
      (name): NamedWeight => ({
        group,
        name,
        weight: () => file.weight(`model_weights/${group}/${name}`, bfloat16_layers.has(group)),
      }),
    ),
  )
  const find = weightFinder(named)
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
    ? "The .h5 file contains weights but no model: save the whole model (model.save), or " +
      export_advice
    : "The .h5 file contains no Keras model."
