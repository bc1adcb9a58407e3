/** Converts layers that only reshape a tensor, or do nothing in inference. */
import { fromNhwc, isImage, toNhwc } from "../graph-builder.ts"
import { elementCount } from "../weight.ts"
import { type Convert, integersOf, rejectLayer } from "./layer.ts"

/** In NHWC order: transposing the image is cheap, transposing the next layer's weights is not. */
const flatten: Convert = ({ graph, input }) => {
  if (input.shape.length === 1) return input
  const name = graph.add("Flatten", [toNhwc(graph, input)])
  return { name, shape: [elementCount(input.shape)] }
}

const reshape: Convert = (conversion) => {
  const { graph, input, layer } = conversion
  const target = integersOf(conversion, "target_shape")
  const count = elementCount(input.shape)
  const known = elementCount(target.filter((side) => side !== -1))
  const shape = target.map((side) => (side === -1 ? count / known : side))
  const is_whole = shape.every((side) => Number.isSafeInteger(side) && side > 0)
  if (!is_whole || shape.length > 3 || elementCount(shape) !== count) {
    return rejectLayer(layer, `makes [${target.join(", ")}] of [${input.shape.join(", ")}]`)
  }
  // 0 keeps the input's dimension: the batch.
  const inputs = [toNhwc(graph, input), graph.integers([0, ...shape])]
  return fromNhwc(graph, graph.add("Reshape", inputs), shape)
}

const permute: Convert = (conversion) => {
  const { graph, input, layer } = conversion
  const order = integersOf(conversion, "dims")
  const axes = input.shape.map((_, axis) => axis + 1)
  if (order.length !== axes.length || !axes.every((axis) => order.includes(axis))) {
    return rejectLayer(layer, `has the dims [${order.join(", ")}]`)
  }
  const shape = order.map((axis) => input.shape[axis - 1] ?? 1)
  const transposed = graph.add("Transpose", [toNhwc(graph, input)], { perm: [0, ...order] })
  return isImage(input) ? fromNhwc(graph, transposed, shape) : { name: transposed, shape }
}

const identity: Convert = ({ input }) => input

/** Layers that have an effect only in training. */
const training_only = [
  "Dropout",
  "SpatialDropout1D",
  "SpatialDropout2D",
  "AlphaDropout",
  "GaussianDropout",
  "GaussianNoise",
  "ActivityRegularization",
  "RandomFlip",
  "RandomRotation",
  "RandomZoom",
  "RandomTranslation",
  "RandomContrast",
  "RandomBrightness",
  "RandomHeight",
  "RandomWidth",
  "RandomShear",
  "RandomHue",
  "RandomSaturation",
  "RandomSharpness",
  "RandomColorJitter",
  "RandomGrayscale",
  "RandomPosterization",
  "RandomErasing",
  "RandomGaussianBlur",
  "RandomColorDegeneration",
  "RandomInvert",
]

export const shape_layers: Readonly<Record<string, Convert>> = {
  Flatten: flatten,
  Reshape: reshape,
  Permute: permute,
  ...Object.fromEntries(training_only.map((kind) => [kind, identity])),
}
