/**
 * The network that is trained: five convolutions without padding and two dense layers.
 *
 * Its first layer is an average pooling that halves the image. Training therefore needs only images
 * of half the side. Source: plant facts 5.
 */
import type * as Core from "@tensorflow/tfjs-core"
import { side } from "#schemas/image-side.ts"
import type { Random } from "./leaves/noise.ts"
import type { Tensors } from "./tensors.ts"

/** The side of a training image, in pixels. */
export const trained_side = side / 2

interface Convolution {
  readonly filters: number
  readonly stride: number
}

export interface Network {
  readonly convolutions: ReadonlyArray<Convolution>
  /** Units of the penultimate layer. */
  readonly units: number
  readonly classes: number
}

/** 0.26 million weights: half a megabyte at 16 bits. */
export const smallNetwork = (classes: number): Network => ({
  convolutions: [
    { filters: 16, stride: 2 },
    { filters: 32, stride: 2 },
    { filters: 48, stride: 2 },
    { filters: 64, stride: 1 },
    { filters: 96, stride: 2 },
  ],
  units: 64,
  classes,
})

const kernel = 3
const channels = 3

export interface Weight {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly values: Float32Array
}

const normal = (random: Random) =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

/** He initialization. */
const initialWeight = (random: Random, name: string, shape: ReadonlyArray<number>): Weight => {
  const length = shape.reduce((product, size) => product * size, 1)
  const deviation = Math.sqrt(2 / (length / (shape.at(-1) ?? 1)))
  return { name, shape, values: Float32Array.from({ length }, () => normal(random) * deviation) }
}

const zeros = (name: string, length: number): Weight => ({
  name,
  shape: [length],
  values: new Float32Array(length),
})

/** Initial weights in layer order: kernel, then bias. */
export const initialWeights = (network: Network, random: Random): ReadonlyArray<Weight> => {
  const weights: Array<Weight> = []
  let depth = channels
  let size = trained_side
  for (const [i, { filters, stride }] of network.convolutions.entries()) {
    weights.push(initialWeight(random, `conv_${i + 1}/kernel`, [kernel, kernel, depth, filters]))
    weights.push(zeros(`conv_${i + 1}/bias`, filters))
    depth = filters
    size = Math.floor((size - kernel) / stride) + 1
  }
  const flat = size * size * depth
  weights.push(initialWeight(random, "features/kernel", [flat, network.units]))
  weights.push(zeros("features/bias", network.units))
  weights.push(initialWeight(random, "classes/kernel", [network.units, network.classes]))
  weights.push(zeros("classes/bias", network.classes))
  return weights
}

/** Logits float32[n, classes] of images float32[n, 112, 112, 3] scaled to 0 to 1. */
export const logitsOf = (
  tf: Tensors,
  network: Network,
  weights: ReadonlyArray<Core.Tensor>,
  images: Core.Tensor4D,
): Core.Tensor2D => {
  const at = (index: number) => {
    const weight = weights[index]
    if (weight === undefined) throw new Error(`the weight ${index} does not exist`)
    return weight
  }
  let activations = images
  for (const [i, { stride }] of network.convolutions.entries()) {
    // initialWeights gives each kernel this rank.
    const filter = at(2 * i) as Core.Tensor4D
    activations = tf.relu(tf.add(tf.conv2d(activations, filter, stride, "valid"), at(2 * i + 1)))
  }
  const flat = tf.reshape(activations, [activations.shape[0], -1])
  const first = 2 * network.convolutions.length
  const features = tf.relu(tf.add(tf.matMul(flat, at(first)), at(first + 1)))
  return tf.add(tf.matMul(features, at(first + 2)), at(first + 3))
}

const shared = { trainable: true, dtype: "float32" }

const dense = (name: string, units: number, activation: string) => ({
  class_name: "Dense",
  config: { ...shared, name, units, activation, use_bias: true },
})

/** The Keras configuration of the network, for images of 224 by 224. */
export const topologyOf = ({ convolutions, units, classes }: Network) => ({
  keras_version: "2.15.0",
  backend: "tensorflow",
  model_config: {
    class_name: "Sequential",
    config: {
      name: "small",
      layers: [
        {
          class_name: "AveragePooling2D",
          config: {
            ...shared,
            name: "halve",
            batch_input_shape: [null, side, side, channels],
            pool_size: [2, 2],
            strides: [2, 2],
            padding: "valid",
            data_format: "channels_last",
          },
        },
        ...convolutions.map(({ filters, stride }, i) => ({
          class_name: "Conv2D",
          config: {
            ...shared,
            name: `conv_${i + 1}`,
            filters,
            kernel_size: [kernel, kernel],
            strides: [stride, stride],
            padding: "valid",
            data_format: "channels_last",
            dilation_rate: [1, 1],
            activation: "relu",
            use_bias: true,
          },
        })),
        { class_name: "Flatten", config: { ...shared, name: "flatten" } },
        dense("features", units, "relu"),
        dense("classes", classes, "softmax"),
      ],
    },
  },
})
