/** MobileNetV2, a typical network for phones. Source: arXiv 1801.04381. */
import * as layers from "@tensorflow/tfjs-layers"
import { seeded, through } from "./tfjs-network.ts"

const { conv2d, depthwiseConv2d, dense } = layers.layers

/** [expansion, channels, repeats, stride] of each group. Source: arXiv 1801.04381, table 2. */
const groups = [
  ...([
    [1, 16, 1, 1],
    [6, 24, 2, 2],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
  ] as const),
  ...([
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
  ] as const),
]

/**
 * MobileNetV2 with 38 classes as in Keras, or with its batch normalizations folded into the
 * convolutions. The random weights are seeded.
 */
export const mobileNet = (is_folded = false) => {
  const normal = () => (is_folded ? [] : [layers.layers.batchNormalization()])
  const relu6 = () => layers.layers.reLU({ maxValue: 6 })
  const input = layers.input({ shape: [224, 224, 3] })
  const first = conv2d({
    filters: 32,
    kernelSize: 3,
    strides: 2,
    padding: "same",
    useBias: is_folded,
  })
  let x = through(first, ...normal(), relu6())(input)
  for (const [expansion, filters, repeats, stride] of groups) {
    for (let n = 0; n < repeats; n++) {
      const from = x
      const wide = (from.shape[3] ?? 1) * expansion
      const strides = n === 0 ? stride : 1
      if (expansion > 1) {
        x = through(
          conv2d({ filters: wide, kernelSize: 1, useBias: is_folded }),
          ...normal(),
          relu6(),
        )(x)
      }
      // Keras has an explicit padding layer before a stride of 2.
      if (strides === 2 && !is_folded)
        x = through(
          layers.layers.zeroPadding2d({
            padding: [
              [0, 1],
              [0, 1],
            ],
          }),
        )(x)
      const padding = strides === 2 && !is_folded ? "valid" : "same"
      x = through(
        depthwiseConv2d({ kernelSize: 3, strides, padding, useBias: is_folded }),
        ...normal(),
        relu6(),
        conv2d({ filters, kernelSize: 1, useBias: is_folded }),
        ...normal(),
      )(x)
      // It returns one tensor.
      if (n > 0) x = layers.layers.add().apply([from, x]) as layers.SymbolicTensor
    }
  }
  const end = through(
    conv2d({ filters: 1280, kernelSize: 1, useBias: is_folded }),
    ...normal(),
    relu6(),
    layers.layers.globalAveragePooling2d({}),
    layers.layers.dropout({ rate: 0.2 }),
    dense({ units: 38, activation: "softmax" }),
  )(x)
  return seeded(layers.model({ inputs: input, outputs: end }))
}
