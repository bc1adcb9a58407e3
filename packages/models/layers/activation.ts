/** Converts Keras activations. Source: keras-team/keras, activations. */
import { axisOf, type Value } from "../graph-builder.ts"
import { isRecord, type Layer } from "../keras/config.ts"
import { transpose } from "../transpose.ts"
import { type Conversion, type Convert, numberOf, rejectLayer, requiredWeight } from "./layer.ts"

type Activation = (conversion: Conversion, value: Value) => string

const unary =
  (type: string): Activation =>
  ({ graph }, { name }) =>
    graph.add(type, [name])

const clip = ({ graph }: Conversion, name: string, lowest: number, highest: number) =>
  graph.add("Clip", [name, graph.floats([lowest]), graph.floats([highest])])

const softmax: Activation = ({ graph }, value) =>
  graph.add("Softmax", [value.name], { axis: axisOf(value, -1) })

/** The slope is 0.2 in Keras 2 and 1/6 in Keras 3. */
const hardSigmoid: Activation = ({ graph, is_keras_3 }, { name }) =>
  graph.add("HardSigmoid", [name], { alpha: { float: is_keras_3 ? 1 / 6 : 0.2 } })

const hardSwish: Activation = ({ graph }, { name }) =>
  graph.add("Mul", [name, graph.add("HardSigmoid", [name], { alpha: { float: 1 / 6 } })])

const swish: Activation = ({ graph }, { name }) =>
  graph.add("Mul", [name, graph.add("Sigmoid", [name])])

/** x (1 + erf(x / sqrt 2)) / 2, Keras's default; its approximation is not supported. */
const gelu: Activation = ({ graph }, { name }) => {
  const error = graph.add("Erf", [graph.add("Mul", [name, graph.floats([Math.SQRT1_2])])])
  const product = graph.add("Mul", [name, graph.add("Add", [error, graph.floats([1])])])
  return graph.add("Mul", [product, graph.floats([0.5])])
}

const mish: Activation = ({ graph }, { name }) =>
  graph.add("Mul", [name, graph.add("Tanh", [graph.add("Softplus", [name])])])

const leakyReluOf =
  (alpha: number): Activation =>
  ({ graph }, { name }) =>
    graph.add("LeakyRelu", [name], { alpha: { float: alpha } })

const relu6: Activation = (conversion, { name }) => clip(conversion, name, 0, 6)

const activations: Readonly<Record<string, Activation>> = {
  linear: (_, { name }) => name,
  relu: unary("Relu"),
  relu6: relu6,
  leaky_relu: leakyReluOf(0.2),
  elu: unary("Elu"),
  selu: unary("Selu"),
  sigmoid: unary("Sigmoid"),
  hard_sigmoid: hardSigmoid,
  tanh: unary("Tanh"),
  softplus: unary("Softplus"),
  softsign: unary("Softsign"),
  exponential: unary("Exp"),
  softmax,
  swish,
  silu: swish,
  hard_swish: hardSwish,
  hard_silu: hardSwish,
  gelu,
  mish,
}

/** The name of a layer's activation. */
const activationOf = ({ config }: Layer) => {
  const { activation } = config
  return isRecord(activation) ? activation.config : (activation ?? "linear")
}

/** Describes a layer's activation if it is not supported. */
export const unsupportedActivation = (layer: Layer): string | undefined => {
  const name = activationOf(layer)
  return typeof name === "string" && Object.hasOwn(activations, name)
    ? undefined
    : `activation ${JSON.stringify(name) ?? "?"}`
}

/** Applies a layer's activation to its output. */
export const applyActivation = (conversion: Conversion, value: Value): Value => {
  const apply = activations[String(activationOf(conversion.layer))]
  if (apply === undefined) return rejectLayer(conversion.layer, "has an unsupported activation")
  return { name: apply(conversion, value), shape: value.shape }
}

const relu: Convert = (conversion) => {
  const { graph, config, input, layer } = conversion
  const { name, shape } = input
  const slope = numberOf(config, "negative_slope", 0)
  const highest = numberOf(config, "max_value", Number.POSITIVE_INFINITY)
  if (numberOf(config, "threshold", 0) !== 0) return rejectLayer(layer, "has a threshold")
  if (slope === 0) {
    const is_bounded = Number.isFinite(highest)
    return {
      name: is_bounded ? clip(conversion, name, 0, highest) : graph.add("Relu", [name]),
      shape,
    }
  }
  const leaky = leakyReluOf(slope)(conversion, input)
  if (!Number.isFinite(highest)) return { name: leaky, shape }
  return { name: graph.add("Min", [leaky, graph.floats([highest])]), shape }
}

const leakyRelu: Convert = (conversion) => {
  const { config, input } = conversion
  const alpha = numberOf(config, "alpha", numberOf(config, "negative_slope", 0.3))
  return { name: leakyReluOf(alpha)(conversion, input), shape: input.shape }
}

const elu: Convert = ({ graph, config, input }) => ({
  name: graph.add("Elu", [input.name], { alpha: { float: numberOf(config, "alpha", 1) } }),
  shape: input.shape,
})

/** Slopes may be shared along an axis, whose dimension is then 1. */
const prelu: Convert = (conversion) => {
  const { graph, input, addWeight: place } = conversion
  const { shape } = input
  const found = requiredWeight(
    conversion,
    ["alpha"],
    shape.map(() => undefined),
  )
  const fits = found.shape.every((side, axis) => side === 1 || side === shape[axis])
  if (!fits)
    return rejectLayer(conversion.layer, `has slopes of the shape [${found.shape.join(", ")}]`)
  const slopes = shape.length === 3 ? transpose(found, [2, 0, 1]) : found
  return { name: graph.add("PRelu", [input.name, place("alpha", slopes)]), shape }
}

const softmaxLayer: Convert = ({ graph, config, input }) => {
  const axis = axisOf(input, numberOf(config, "axis", -1))
  return { name: graph.add("Softmax", [input.name], { axis }), shape: input.shape }
}

const activation: Convert = (conversion) => applyActivation(conversion, conversion.input)

const asLayer =
  (apply: Activation): Convert =>
  (conversion) => ({ name: apply(conversion, conversion.input), shape: conversion.input.shape })

/**
 * Activations that Keras 2 networks call as TensorFlow functions. Only those whose one argument is
 * a tensor: further arguments would change the result.
 */
export const activation_functions: Readonly<Record<string, Convert>> = {
  "nn.relu": asLayer(unary("Relu")),
  "nn.relu6": asLayer(relu6),
  "nn.elu": asLayer(unary("Elu")),
  "nn.selu": asLayer(unary("Selu")),
  "nn.softsign": asLayer(unary("Softsign")),
  "math.sigmoid": asLayer(unary("Sigmoid")),
  "math.softplus": asLayer(unary("Softplus")),
  "math.tanh": asLayer(unary("Tanh")),
}

export const activation_layers: Readonly<Record<string, Convert>> = {
  Activation: activation,
  ReLU: relu,
  LeakyReLU: leakyRelu,
  ELU: elu,
  PReLU: prelu,
  Softmax: softmaxLayer,
  // Keras 3 operations on tensors.
  Relu: asLayer(unary("Relu")),
  Relu6: asLayer(relu6),
  Selu: asLayer(unary("Selu")),
  Sigmoid: asLayer(unary("Sigmoid")),
  Silu: asLayer(swish),
  Softplus: asLayer(unary("Softplus")),
  Softsign: asLayer(unary("Softsign")),
  Tanh: asLayer(unary("Tanh")),
}
