/** Converts convolutions and dense layers. */

import type { Value } from "../graph-builder.ts"
import { toOnnxKernel, transpose } from "../transpose.ts"
import type { Weight } from "../weight.ts"
import { applyActivation } from "./activation.ts"
import {
  type Conversion,
  type Convert,
  imageShape,
  numberOf,
  pairOf,
  rejectLayer,
  requiredWeight,
} from "./layer.ts"

type Pair = readonly [number, number]

export interface Window {
  readonly kernel: Pair
  readonly strides: Pair
  readonly dilations: Pair
}

export interface Placement {
  /** Top, left, bottom, right. */
  readonly pads: ReadonlyArray<number>
  readonly height: number
  readonly width: number
}

/** "same" puts an odd padding pixel at the end. Source: plant facts 3, trap 7. */
const outputExtent = (
  side: number,
  kernel: number,
  stride: number,
  dilation: number,
  is_same: boolean,
) => {
  const extent = (kernel - 1) * dilation + 1
  if (!is_same) return { before: 0, after: 0, side: Math.floor((side - extent) / stride) + 1 }
  const result = Math.ceil(side / stride)
  const pad = Math.max((result - 1) * stride + extent - side, 0)
  return { before: Math.floor(pad / 2), after: Math.ceil(pad / 2), side: result }
}

/** The padding of a sliding window and the size of its output. */
export const placementOf = (conversion: Conversion, window: Window): Placement => {
  const { layer, config } = conversion
  const { height, width } = imageShape(conversion)
  const padding = config.padding ?? "valid"
  if (padding !== "same" && padding !== "valid")
    return rejectLayer(layer, `pads by ${JSON.stringify(padding)}`)
  const is_same = padding === "same"
  const { kernel, strides, dilations } = window
  const y = outputExtent(height, kernel[0], strides[0], dilations[0], is_same)
  const x = outputExtent(width, kernel[1], strides[1], dilations[1], is_same)
  if (y.side < 1 || x.side < 1) return rejectLayer(layer, "is larger than its input")
  return { pads: [y.before, x.before, y.after, x.after], height: y.side, width: x.side }
}

const windowOf = (conversion: Conversion, kernel: Pair): Window => ({
  kernel,
  strides: pairOf(conversion, "strides", 1),
  dilations: pairOf(conversion, "dilation_rate", 1),
})

interface ConvOptions {
  readonly name: string
  readonly kernel: Weight
  readonly groups: number
  readonly window: Window
  readonly placement: Placement
  readonly has_bias: boolean
}

/** Adds a convolution whose kernel is [out, in per group, height, width]. */
const addConv = (conversion: Conversion, from: string, step: ConvOptions): Value => {
  const { graph, addWeight: place } = conversion
  const { kernel, groups, window, placement } = step
  const [channels = 0] = kernel.shape
  const inputs = [from, place(step.name, kernel)]
  if (step.has_bias) inputs.push(place("bias", requiredWeight(conversion, ["bias"], [channels])))
  const name = graph.add("Conv", inputs, {
    kernel_shape: window.kernel,
    strides: window.strides,
    dilations: window.dilations,
    pads: placement.pads,
    group: groups,
  })
  return { name, shape: [placement.height, placement.width, channels] }
}

const hasBias = ({ config }: Conversion) => config.use_bias !== false

const conv2d: Convert = (conversion) => {
  const { config, input, layer } = conversion
  const { channels } = imageShape(conversion)
  const groups = numberOf(config, "groups", 1)
  if (channels % groups !== 0) return rejectLayer(layer, `has ${groups} groups`)
  const kernel = pairOf(conversion, "kernel_size", 1)
  const found = requiredWeight(conversion, ["kernel"], [...kernel, channels / groups, undefined])
  const window = windowOf(conversion, kernel)
  const value = addConv(conversion, input.name, {
    name: "kernel",
    kernel: toOnnxKernel(found),
    groups,
    window,
    placement: placementOf(conversion, window),
    has_bias: hasBias(conversion),
  })
  return applyActivation(conversion, value)
}

/** [height, width, in, multiplier] as [in * multiplier, 1, height, width]. */
const depthwiseKernel = (found: Weight): Weight => {
  const { shape, parts } = transpose(found, [2, 3, 0, 1])
  const [channels = 1, multiplier = 1, height = 1, width = 1] = shape
  return { shape: [channels * multiplier, 1, height, width], parts }
}

/** Keras 2 calls the variable depthwise_kernel, Keras 3 kernel. Source: plant facts 3, trap 3. */
const addDepthwiseConv = (
  conversion: Conversion,
  names: ReadonlyArray<string>,
  has_bias: boolean,
) => {
  const { channels } = imageShape(conversion)
  const kernel = pairOf(conversion, "kernel_size", 1)
  const found = requiredWeight(conversion, names, [...kernel, channels, undefined])
  const window = windowOf(conversion, kernel)
  return addConv(conversion, conversion.input.name, {
    name: "depthwise_kernel",
    kernel: depthwiseKernel(found),
    groups: channels,
    window,
    placement: placementOf(conversion, window),
    has_bias,
  })
}

const depthwiseConv2d: Convert = (conversion) =>
  applyActivation(
    conversion,
    addDepthwiseConv(conversion, ["depthwise_kernel", "kernel"], hasBias(conversion)),
  )

const separableConv2d: Convert = (conversion) => {
  const depthwise = addDepthwiseConv(conversion, ["depthwise_kernel"], false)
  const [height = 1, width = 1, channels = 1] = depthwise.shape
  const found = requiredWeight(conversion, ["pointwise_kernel"], [1, 1, channels, undefined])
  const value = addConv(conversion, depthwise.name, {
    name: "pointwise_kernel",
    kernel: toOnnxKernel(found),
    groups: 1,
    window: { kernel: [1, 1], strides: [1, 1], dilations: [1, 1] },
    placement: { pads: [0, 0, 0, 0], height, width },
    has_bias: hasBias(conversion),
  })
  return applyActivation(conversion, value)
}

/** On an image it is a convolution with a 1x1 kernel. */
const dense: Convert = (conversion) => {
  const { graph, input, addWeight: place } = conversion
  const length = input.shape.at(-1) ?? 1
  const kernel = requiredWeight(conversion, ["kernel"], [length, undefined])
  const units = kernel.shape[1] ?? 1
  const shape = [...input.shape.slice(0, -1), units]
  const biases = hasBias(conversion)
    ? [place("bias", requiredWeight(conversion, ["bias"], [units]))]
    : []
  if (input.shape.length === 3) {
    const { shape: sides, parts } = transpose(kernel, [1, 0])
    const pixel = place("kernel", { shape: [...sides, 1, 1], parts })
    const name = graph.add("Conv", [input.name, pixel, ...biases])
    return applyActivation(conversion, { name, shape })
  }
  const weights = place("kernel", kernel)
  if (input.shape.length === 1) {
    const name = graph.add("Gemm", [input.name, weights, ...biases])
    return applyActivation(conversion, { name, shape })
  }
  const product = graph.add("MatMul", [input.name, weights])
  const name = biases.reduce((sum, bias) => graph.add("Add", [sum, bias]), product)
  return applyActivation(conversion, { name, shape })
}

export const convolutions: Readonly<Record<string, Convert>> = {
  Conv2D: conv2d,
  Convolution2D: conv2d,
  DepthwiseConv2D: depthwiseConv2d,
  SeparableConv2D: separableConv2d,
  SeparableConvolution2D: separableConv2d,
  Dense: dense,
}
