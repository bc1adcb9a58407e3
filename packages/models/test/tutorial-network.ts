/** Writes the network of a well-known tutorial in Keras 2's format: 47.8 million random weights. */
import { h5wasm } from "h5wasm/node"

const layer = (class_name: string, name: string, config: object = {}) => ({
  class_name,
  config: { name, trainable: true, dtype: "float32", ...config },
})

const conv = (name: string, filters: number, more: object = {}) =>
  layer("Conv2D", name, {
    filters,
    kernel_size: [3, 3],
    strides: [1, 1],
    padding: "valid",
    data_format: "channels_last",
    activation: "relu",
    use_bias: true,
    ...more,
  })

const pool = (name: string) =>
  layer("MaxPooling2D", name, { pool_size: [2, 2], padding: "valid", strides: [2, 2] })

const dense = (name: string, units: number, activation: string) =>
  layer("Dense", name, { units, activation, use_bias: true })

/** Source: plant facts 1. */
const layers = [
  conv("conv2d", 32, { batch_input_shape: [null, 224, 224, 3] }),
  pool("max_pooling2d"),
  conv("conv2d_1", 64),
  pool("max_pooling2d_1"),
  layer("Flatten", "flatten"),
  dense("dense", 256, "relu"),
  dense("dense_1", 38, "softmax"),
]

const weights: Readonly<Record<string, ReadonlyArray<number>>> = {
  conv2d: [3, 3, 3, 32],
  conv2d_1: [3, 3, 32, 64],
  dense: [54 * 54 * 64, 256],
  dense_1: [256, 38],
}

export const tutorial_parameters = 47_805_158

/** Small pseudorandom numbers from a fixed seed. */
const numbers = (count: number, reach: number) => {
  const values = new Float32Array(count)
  let state = 20_261_122
  for (let place = 0; place < count; place++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    values[place] = (state / 2 ** 31) * reach
  }
  return values
}

/** Writes the file of 191 MB. */
export const writeTutorialNetwork = async (path: string) => {
  await h5wasm.ready
  const file = new h5wasm.File(path, "w")
  const config = { class_name: "Sequential", config: { name: "sequential", layers } }
  file.create_attribute("keras_version", "2.15.0")
  file.create_attribute("model_config", JSON.stringify(config))
  const root = file.create_group("model_weights")
  root.create_attribute(
    "layer_names",
    layers.map(({ config }) => config.name),
  )
  for (const { config } of layers) {
    const { name } = config
    const group = root.create_group(name)
    const shape = weights[name]
    if (shape === undefined) continue
    const bias = [shape.at(-1) ?? 1]
    const inner = group.create_group(name)
    group.create_attribute("weight_names", [`${name}/kernel:0`, `${name}/bias:0`])
    for (const [variable, sides] of [
      ["kernel:0", shape],
      ["bias:0", bias],
    ] as const) {
      const count = sides.reduce((product, side) => product * side, 1)
      const reach = Math.sqrt(6 / Math.max(count / (sides.at(-1) ?? 1), 3))
      inner.create_dataset({ name: variable, data: numbers(count, reach), shape: [...sides] })
    }
  }
  file.close()
}
