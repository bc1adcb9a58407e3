/** Convolutions of Keras as ONNX has them. */

import type { Value } from "../graph.ts"
import type { Weight } from "../weight.ts"
import { kernelFirst, permuted } from "../weight-order.ts"
import { activated } from "./activation.ts"
import {
  type Conversion,
  type Convert,
  needed,
  numberOf,
  pairOf,
  refuse,
  sidesOf,
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

/** "same" pads more at the end where it cannot pad alike. Source: plant facts 3, trap 7. */
const along = (
  side: number,
  kernel: number,
  stride: number,
  dilation: number,
  is_same: boolean,
) => {
  const reach = (kernel - 1) * dilation + 1
  if (!is_same) return { before: 0, after: 0, side: Math.floor((side - reach) / stride) + 1 }
  const result = Math.ceil(side / stride)
  const pad = Math.max((result - 1) * stride + reach - side, 0)
  return { before: Math.floor(pad / 2), after: Math.ceil(pad / 2), side: result }
}

/** Where a window goes over an image, and how large what comes out is. */
export const placementOf = (conversion: Conversion, window: Window): Placement => {
  const { layer, config } = conversion
  const { height, width } = sidesOf(conversion)
  const padding = config.padding ?? "valid"
  if (padding !== "same" && padding !== "valid")
    return refuse(layer, `pads by ${JSON.stringify(padding)}`)
  const is_same = padding === "same"
  const { kernel, strides, dilations } = window
  const y = along(height, kernel[0], strides[0], dilations[0], is_same)
  const x = along(width, kernel[1], strides[1], dilations[1], is_same)
  if (y.side < 1 || x.side < 1) return refuse(layer, "is larger than what it is called with")
  return { pads: [y.before, x.before, y.after, x.after], height: y.side, width: x.side }
}

const windowOf = (conversion: Conversion, kernel: Pair): Window => ({
  kernel,
  strides: pairOf(conversion, "strides", 1),
  dilations: pairOf(conversion, "dilation_rate", 1),
})

interface Step {
  readonly name: string
  readonly kernel: Weight
  readonly groups: number
  readonly window: Window
  readonly placement: Placement
  readonly has_bias: boolean
}

/** One convolution; `kernel` is [out, in of a group, height, width] already. */
const convolved = (conversion: Conversion, from: string, step: Step): Value => {
  const { graph, place } = conversion
  const { kernel, groups, window, placement } = step
  const [channels = 0] = kernel.shape
  const inputs = [from, place(step.name, kernel)]
  if (step.has_bias) inputs.push(place("bias", needed(conversion, ["bias"], [channels])))
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
  const { channels } = sidesOf(conversion)
  const groups = numberOf(config, "groups", 1)
  if (channels % groups !== 0) return refuse(layer, `has ${groups} groups`)
  const kernel = pairOf(conversion, "kernel_size", 1)
  const found = needed(conversion, ["kernel"], [...kernel, channels / groups, undefined])
  const window = windowOf(conversion, kernel)
  const value = convolved(conversion, input.name, {
    name: "kernel",
    kernel: kernelFirst(found),
    groups,
    window,
    placement: placementOf(conversion, window),
    has_bias: hasBias(conversion),
  })
  return activated(conversion, value)
}

/** [height, width, in, multiplier] as [in * multiplier, 1, height, width]. */
const depthwiseKernel = (found: Weight): Weight => {
  const { shape, parts } = permuted(found, [2, 3, 0, 1])
  const [channels = 1, multiplier = 1, height = 1, width = 1] = shape
  return { shape: [channels * multiplier, 1, height, width], parts }
}

/** The variable is depthwise_kernel in Keras 2, kernel in 3. Source: plant facts 3, trap 3. */
const depthwise = (conversion: Conversion, names: ReadonlyArray<string>, has_bias: boolean) => {
  const { channels } = sidesOf(conversion)
  const kernel = pairOf(conversion, "kernel_size", 1)
  const found = needed(conversion, names, [...kernel, channels, undefined])
  const window = windowOf(conversion, kernel)
  return convolved(conversion, conversion.input.name, {
    name: "depthwise_kernel",
    kernel: depthwiseKernel(found),
    groups: channels,
    window,
    placement: placementOf(conversion, window),
    has_bias,
  })
}

const depthwiseConv2d: Convert = (conversion) =>
  activated(conversion, depthwise(conversion, ["depthwise_kernel", "kernel"], hasBias(conversion)))

const separableConv2d: Convert = (conversion) => {
  const spread = depthwise(conversion, ["depthwise_kernel"], false)
  const [height = 1, width = 1, channels = 1] = spread.shape
  const found = needed(conversion, ["pointwise_kernel"], [1, 1, channels, undefined])
  const value = convolved(conversion, spread.name, {
    name: "pointwise_kernel",
    kernel: kernelFirst(found),
    groups: 1,
    window: { kernel: [1, 1], strides: [1, 1], dilations: [1, 1] },
    placement: { pads: [0, 0, 0, 0], height, width },
    has_bias: hasBias(conversion),
  })
  return activated(conversion, value)
}

/** Of an image it is a convolution with a window of one pixel. */
const dense: Convert = (conversion) => {
  const { graph, input, place } = conversion
  const length = input.shape.at(-1) ?? 1
  const kernel = needed(conversion, ["kernel"], [length, undefined])
  const units = kernel.shape[1] ?? 1
  const shape = [...input.shape.slice(0, -1), units]
  const biases = hasBias(conversion) ? [place("bias", needed(conversion, ["bias"], [units]))] : []
  if (input.shape.length === 3) {
    const { shape: sides, parts } = permuted(kernel, [1, 0])
    const pixel = place("kernel", { shape: [...sides, 1, 1], parts })
    const name = graph.add("Conv", [input.name, pixel, ...biases])
    return activated(conversion, { name, shape })
  }
  const weights = place("kernel", kernel)
  if (input.shape.length === 1) {
    const name = graph.add("Gemm", [input.name, weights, ...biases])
    return activated(conversion, { name, shape })
  }
  const product = graph.add("MatMul", [input.name, weights])
  const name = biases.reduce((sum, bias) => graph.add("Add", [sum, bias]), product)
  return activated(conversion, { name, shape })
}

export const convolutions: Readonly<Record<string, Convert>> = {
  Conv2D: conv2d,
  Convolution2D: conv2d,
  DepthwiseConv2D: depthwiseConv2d,
  SeparableConv2D: separableConv2d,
  SeparableConvolution2D: separableConv2d,
  Dense: dense,
}
