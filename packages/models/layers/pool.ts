/** Converts pooling, padding, cropping and resizing layers. */
import type { Value } from "../graph-builder.ts"
import { listOf } from "../keras/config.ts"
import { placementOf } from "./conv.ts"
import {
  type Conversion,
  type Convert,
  imageShape,
  numberOf,
  pairOf,
  rejectLayer,
} from "./layer.ts"

const pool =
  (type: string): Convert =>
  (conversion) => {
    const { graph, config, input } = conversion
    const { channels } = imageShape(conversion)
    const kernel = pairOf(conversion, "pool_size", 2)
    const strides = config.strides == null ? kernel : pairOf(conversion, "strides", 1)
    const { pads, height, width } = placementOf(conversion, { kernel, strides, dilations: [1, 1] })
    const name = graph.add(type, [input.name], { kernel_shape: kernel, strides, pads })
    return { name, shape: [height, width, channels] }
  }

const globalPool =
  (type: string): Convert =>
  (conversion) => {
    const { graph, config, input } = conversion
    const { channels } = imageShape(conversion)
    const pooled = graph.add(type, [input.name])
    if (config.keepdims === true) return { name: pooled, shape: [1, 1, channels] }
    return { name: graph.add("Flatten", [pooled]), shape: [channels] }
  }

/** Margins written as one number, two numbers, or two pairs. */
const marginsFrom = ({ layer, config }: Conversion, name: string) => {
  const value = config[name]
  const [y, x = y] = Array.isArray(value) ? value : [value]
  const sides = [y, x].flatMap((side) => (Array.isArray(side) ? listOf(side) : [side, side]))
  const is_whole = sides.every((side) => Number.isSafeInteger(side) && Number(side) >= 0)
  const [top, bottom, left, right] = sides.map(Number)
  if (
    !is_whole ||
    top === undefined ||
    bottom === undefined ||
    left === undefined ||
    right === undefined
  ) {
    return rejectLayer(layer, `has the ${name} ${JSON.stringify(value)}`)
  }
  return { top, bottom, left, right }
}

const zeroPadding: Convert = (conversion) => {
  const { graph, input } = conversion
  const { height, width, channels } = imageShape(conversion)
  const { top, bottom, left, right } = marginsFrom(conversion, "padding")
  const pads = graph.integers([0, 0, top, left, 0, 0, bottom, right])
  return {
    name: graph.add("Pad", [input.name, pads]),
    shape: [height + top + bottom, width + left + right, channels],
  }
}

const cropping: Convert = (conversion) => {
  const { graph, input, layer } = conversion
  const { height, width, channels } = imageShape(conversion)
  const { top, bottom, left, right } = marginsFrom(conversion, "cropping")
  const shape = [height - top - bottom, width - left - right, channels]
  if (shape.some((side) => side < 1)) return rejectLayer(layer, "removes the whole image")
  const inputs = [
    input.name,
    graph.integers([top, left]),
    graph.integers([height - bottom, width - right]),
    graph.integers([2, 3]),
  ]
  return { name: graph.add("Slice", inputs), shape }
}

const resize = (conversion: Conversion, height: number, width: number): Value => {
  const { graph, input, config, layer } = conversion
  const { channels, ...from } = imageShape(conversion)
  const shape = [height, width, channels]
  if (height === from.height && width === from.width) return { name: input.name, shape }
  const interpolation = config.interpolation ?? "nearest"
  const is_nearest = interpolation === "nearest"
  if (!is_nearest && interpolation !== "bilinear") {
    return rejectLayer(layer, `scales by ${JSON.stringify(interpolation)}`)
  }
  const sizes = graph.integers([1, channels, height, width])
  // The batch is dynamic, so it is read from the input.
  const batch = graph.add("Slice", [
    graph.add("Shape", [input.name]),
    graph.integers([0]),
    graph.integers([1]),
  ])
  const rest = graph.add("Slice", [sizes, graph.integers([1]), graph.integers([4])])
  const target = graph.add("Concat", [batch, rest], { axis: 0 })
  const name = graph.add("Resize", [input.name, "", "", target], {
    mode: is_nearest ? "nearest" : "linear",
    coordinate_transformation_mode: "half_pixel",
    nearest_mode: "round_prefer_ceil",
  })
  return { name, shape }
}

const upSampling: Convert = (conversion) => {
  const { height, width } = imageShape(conversion)
  const [y, x] = pairOf(conversion, "size", 2)
  return resize(conversion, height * y, width * x)
}

const resizing: Convert = (conversion) => {
  const { config, layer } = conversion
  const { height, width } = imageShape(conversion)
  const to_height = numberOf(config, "height", height)
  const to_width = numberOf(config, "width", width)
  const is_plain = ["crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"].every(
    (name) => config[name] !== true,
  )
  if (!is_plain) return rejectLayer(layer, "crops, pads or smooths")
  return resize(
    { ...conversion, config: { ...config, interpolation: config.interpolation ?? "bilinear" } },
    to_height,
    to_width,
  )
}

export const image_layers: Readonly<Record<string, Convert>> = {
  MaxPooling2D: pool("MaxPool"),
  MaxPool2D: pool("MaxPool"),
  AveragePooling2D: pool("AveragePool"),
  AvgPool2D: pool("AveragePool"),
  GlobalAveragePooling2D: globalPool("GlobalAveragePool"),
  GlobalAvgPool2D: globalPool("GlobalAveragePool"),
  GlobalMaxPooling2D: globalPool("GlobalMaxPool"),
  GlobalMaxPool2D: globalPool("GlobalMaxPool"),
  ZeroPadding2D: zeroPadding,
  Cropping2D: cropping,
  UpSampling2D: upSampling,
  Resizing: resizing,
}
