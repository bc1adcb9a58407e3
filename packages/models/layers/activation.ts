/** Activations of Keras as ONNX has them. Source: keras-team/keras, activations. */
import { axisOf, type Value } from "../graph.ts"
import { isRecord, type Layer } from "../keras/config.ts"
import { permuted } from "../weight-order.ts"
import { type Conversion, type Convert, needed, numberOf, refuse } from "./layer.ts"

type Apply = (conversion: Conversion, value: Value) => string

const single =
  (type: string): Apply =>
  ({ graph }, { name }) =>
    graph.add(type, [name])

const clipped = ({ graph }: Conversion, name: string, lowest: number, highest: number) =>
  graph.add("Clip", [name, graph.floats([lowest]), graph.floats([highest])])

const softmax: Apply = ({ graph }, value) =>
  graph.add("Softmax", [value.name], { axis: axisOf(value, -1) })

/** Keras 2 rises by 0.2, Keras 3 by a sixth. */
const hardSigmoid: Apply = ({ graph, is_keras_3 }, { name }) =>
  graph.add("HardSigmoid", [name], { alpha: { float: is_keras_3 ? 1 / 6 : 0.2 } })

const hardSwish: Apply = ({ graph }, { name }) =>
  graph.add("Mul", [name, graph.add("HardSigmoid", [name], { alpha: { float: 1 / 6 } })])

const swish: Apply = ({ graph }, { name }) => graph.add("Mul", [name, graph.add("Sigmoid", [name])])

/** x (1 + erf(x / sqrt 2)) / 2, which Keras computes unless asked for the approximation. */
const gelu: Apply = ({ graph }, { name }) => {
  const error = graph.add("Erf", [graph.add("Mul", [name, graph.floats([Math.SQRT1_2])])])
  const grown = graph.add("Mul", [name, graph.add("Add", [error, graph.floats([1])])])
  return graph.add("Mul", [grown, graph.floats([0.5])])
}

const mish: Apply = ({ graph }, { name }) =>
  graph.add("Mul", [name, graph.add("Tanh", [graph.add("Softplus", [name])])])

const leaky =
  (alpha: number): Apply =>
  ({ graph }, { name }) =>
    graph.add("LeakyRelu", [name], { alpha: { float: alpha } })

const bounded: Apply = (conversion, { name }) => clipped(conversion, name, 0, 6)

const activations: Readonly<Record<string, Apply>> = {
  linear: (_, { name }) => name,
  relu: single("Relu"),
  relu6: bounded,
  leaky_relu: leaky(0.2),
  elu: single("Elu"),
  selu: single("Selu"),
  sigmoid: single("Sigmoid"),
  hard_sigmoid: hardSigmoid,
  tanh: single("Tanh"),
  softplus: single("Softplus"),
  softsign: single("Softsign"),
  exponential: single("Exp"),
  softmax,
  swish,
  silu: swish,
  hard_swish: hardSwish,
  hard_silu: hardSwish,
  gelu,
  mish,
}

/** Names that the layers which are activations give them. */
const wanted = ({ config }: Layer) => {
  const { activation } = config
  return isRecord(activation) ? activation.config : (activation ?? "linear")
}

/** The activation of a layer that is not known; absent where all is well. */
export const strangeActivation = (layer: Layer): string | undefined => {
  const name = wanted(layer)
  return typeof name === "string" && Object.hasOwn(activations, name)
    ? undefined
    : `activation ${JSON.stringify(name) ?? "?"}`
}

/** What comes out of a layer, through the activation that it is set to. */
export const activated = (conversion: Conversion, value: Value): Value => {
  const apply = activations[String(wanted(conversion.layer))]
  if (apply === undefined) return refuse(conversion.layer, "has an activation that is not known")
  return { name: apply(conversion, value), shape: value.shape }
}

const relu: Convert = (conversion) => {
  const { graph, config, input, layer } = conversion
  const { name, shape } = input
  const slope = numberOf(config, "negative_slope", 0)
  const highest = numberOf(config, "max_value", Number.POSITIVE_INFINITY)
  if (numberOf(config, "threshold", 0) !== 0) return refuse(layer, "has a threshold")
  if (slope === 0) {
    const is_bounded = Number.isFinite(highest)
    return {
      name: is_bounded ? clipped(conversion, name, 0, highest) : graph.add("Relu", [name]),
      shape,
    }
  }
  const risen = leaky(slope)(conversion, input)
  if (!Number.isFinite(highest)) return { name: risen, shape }
  return { name: graph.add("Min", [risen, graph.floats([highest])]), shape }
}

const leakyRelu: Convert = (conversion) => {
  const { config, input } = conversion
  const alpha = numberOf(config, "alpha", numberOf(config, "negative_slope", 0.3))
  return { name: leaky(alpha)(conversion, input), shape: input.shape }
}

const elu: Convert = ({ graph, config, input }) => ({
  name: graph.add("Elu", [input.name], { alpha: { float: numberOf(config, "alpha", 1) } }),
  shape: input.shape,
})

/** Its slopes may be shared along an axis, whose side is 1 then. */
const prelu: Convert = (conversion) => {
  const { graph, input, place } = conversion
  const { shape } = input
  const found = needed(
    conversion,
    ["alpha"],
    shape.map(() => undefined),
  )
  const fits = found.shape.every((side, axis) => side === 1 || side === shape[axis])
  if (!fits) return refuse(conversion.layer, `has slopes of the shape [${found.shape.join(", ")}]`)
  const slopes = shape.length === 3 ? permuted(found, [2, 0, 1]) : found
  return { name: graph.add("PRelu", [input.name, place("alpha", slopes)]), shape }
}

const softmaxLayer: Convert = ({ graph, config, input }) => {
  const axis = axisOf(input, numberOf(config, "axis", -1))
  return { name: graph.add("Softmax", [input.name], { axis }), shape: input.shape }
}

const activation: Convert = (conversion) => activated(conversion, conversion.input)

const alone =
  (apply: Apply): Convert =>
  (conversion) => ({ name: apply(conversion, conversion.input), shape: conversion.input.shape })

/**
 * Activations that are called as functions of TensorFlow, in Keras 2: those that nothing but a
 * tensor is given to, which would change what they compute.
 */
export const activation_functions: Readonly<Record<string, Convert>> = {
  "nn.relu": alone(single("Relu")),
  "nn.relu6": alone(bounded),
  "nn.elu": alone(single("Elu")),
  "nn.selu": alone(single("Selu")),
  "nn.softsign": alone(single("Softsign")),
  "math.sigmoid": alone(single("Sigmoid")),
  "math.softplus": alone(single("Softplus")),
  "math.tanh": alone(single("Tanh")),
}

export const activation_layers: Readonly<Record<string, Convert>> = {
  Activation: activation,
  ReLU: relu,
  LeakyReLU: leakyRelu,
  ELU: elu,
  PReLU: prelu,
  Softmax: softmaxLayer,
  // The operations of Keras 3 on tensors.
  Relu: alone(single("Relu")),
  Relu6: alone(bounded),
  Selu: alone(single("Selu")),
  Sigmoid: alone(single("Sigmoid")),
  Silu: alone(swish),
  Softplus: alone(single("Softplus")),
  Softsign: alone(single("Softsign")),
  Tanh: alone(single("Tanh")),
}
