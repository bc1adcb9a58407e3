/** Layers of Keras that only bring a tensor into another shape, or leave it as it is. */
import { fromKerasOrder, inKerasOrder, isImage } from "../graph.ts"
import { countOf } from "../weight.ts"
import { type Convert, refuse, wholesOf } from "./layer.ts"

/** In Keras's order of the axes: turning the image is free, turning the weights after it is not. */
const flatten: Convert = ({ graph, input }) => {
  if (input.shape.length === 1) return input
  const name = graph.add("Flatten", [inKerasOrder(graph, input)])
  return { name, shape: [countOf(input.shape)] }
}

const reshape: Convert = (conversion) => {
  const { graph, input, layer } = conversion
  const target = wholesOf(conversion, "target_shape")
  const count = countOf(input.shape)
  const known = countOf(target.filter((side) => side !== -1))
  const shape = target.map((side) => (side === -1 ? count / known : side))
  const is_whole = shape.every((side) => Number.isSafeInteger(side) && side > 0)
  if (!is_whole || shape.length > 3 || countOf(shape) !== count) {
    return refuse(layer, `makes [${target.join(", ")}] of [${input.shape.join(", ")}]`)
  }
  // 0 is the side that comes in: the batch.
  const inputs = [inKerasOrder(graph, input), graph.integers([0, ...shape])]
  return fromKerasOrder(graph, graph.add("Reshape", inputs), shape)
}

const permute: Convert = (conversion) => {
  const { graph, input, layer } = conversion
  const order = wholesOf(conversion, "dims")
  const axes = input.shape.map((_, axis) => axis + 1)
  if (order.length !== axes.length || !axes.every((axis) => order.includes(axis))) {
    return refuse(layer, `has the dims [${order.join(", ")}]`)
  }
  const shape = order.map((axis) => input.shape[axis - 1] ?? 1)
  const turned = graph.add("Transpose", [inKerasOrder(graph, input)], { perm: [0, ...order] })
  return isImage(input) ? fromKerasOrder(graph, turned, shape) : { name: turned, shape }
}

const same: Convert = ({ input }) => input

/** What these do, they do in training only. */
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
  ...Object.fromEntries(training_only.map((kind) => [kind, same])),
}
