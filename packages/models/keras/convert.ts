/**
 * Converts a Keras network to an ONNX graph from float32[N, 224, 224, 3] to float32[N, classes].
 *
 * Source: plant facts 3; decisions of document 3, plant model.
 */

import { side } from "#schemas/image-side.ts"
import { expectsBytes, sumsToOne } from "../graph-analysis.ts"
import { type GraphBuilder, graphBuilder, type Value } from "../graph-builder.ts"
import { activation_layers, unsupportedActivation } from "../layers/activation.ts"
import { convolutions } from "../layers/conv.ts"
import { type Convert, describeLayer } from "../layers/layer.ts"
import { merges, unsupportedFunction } from "../layers/merge.ts"
import { normalizations } from "../layers/norm.ts"
import { image_layers } from "../layers/pool.ts"
import { shape_layers } from "../layers/shape.ts"
import { export_advice, reject } from "../model-error.ts"
import type { Network } from "../network.ts"
import type { OnnxGraph } from "../onnx/writer.ts"
import { elementCount } from "../weight.ts"
import { allLayers, type Layer, type Model, type Operand, type Reference } from "./config.ts"

const layers: Readonly<Record<string, Convert>> = {
  ...convolutions,
  ...image_layers,
  ...activation_layers,
  ...normalizations,
  ...shape_layers,
  ...merges,
}

export interface ConvertedModel {
  readonly graph: OnnxGraph
  readonly classes: number
  readonly activation: "softmax" | "sigmoid" | "none"
  readonly parameters: number
  readonly has_rescaling: boolean
  /** The number of layers, including those of nested models. */
  readonly layers: number
}

/** The number of layers that an error lists. */
const listed_layers_max = 12

const unsupported = (layer: Layer): string | undefined => {
  if (layer.model !== undefined || layer.kind === "InputLayer") return undefined
  if (!Object.hasOwn(layers, layer.kind)) return describeLayer(layer)
  if (layer.config.data_format === "channels_first") {
    return `${describeLayer(layer)} with channels first`
  }
  const problem = unsupportedActivation(layer) ?? unsupportedFunction(layer)
  return problem === undefined ? undefined : `${describeLayer(layer)} with the ${problem}`
}

/** Throws a ModelError that lists the layers that cannot be converted. */
const checkLayers = (model: Model) => {
  const found = [...allLayers(model)].flatMap((layer) => unsupported(layer) ?? [])
  if (found.length === 0) return
  const listed = found.slice(0, listed_layers_max).join(", ")
  const more =
    found.length > listed_layers_max ? ` and ${found.length - listed_layers_max} more` : ""
  reject(`These layers cannot be converted: ${listed}${more}. Please ${export_advice}.`)
}

/** Throws a ModelError if the network expects images of another size. */
const checkInput = (model: Model) => {
  for (const { config, kind } of allLayers(model)) {
    const shape = config.batch_shape ?? config.batch_input_shape
    if (!Array.isArray(shape)) continue
    const [, ...sides] = shape
    const fits = sides.length === 3 && [side, side, 3].every((is, at) => (sides[at] ?? is) === is)
    if (!fits) {
      reject(
        `The network takes tensors of ${sides.join(" x ")}, but images are ${side} x ` +
          `${side} x 3: train it for this size, or ${export_advice}.`,
      )
    }
    if (kind === "InputLayer") return
  }
}

type Constant = { readonly constant: unknown }

interface Context {
  readonly graph: GraphBuilder
  readonly network: Network
  readonly parameter_counts: Map<string, number>
}

/** Converts one call of a layer. */
const convertLayer = (
  context: Context,
  layer: Layer,
  operands: ReadonlyArray<Value | Constant>,
): Value => {
  const { graph, network: convertFunctional, parameter_counts: counted } = context
  const input = operands.find((operand) => "name" in operand)
  if (input === undefined)
    return reject(`The layer ${describeLayer(layer)} is called without an input.`)
  if (layer.model !== undefined) return convertModel(context, layer.model, input)
  const convert = layers[layer.kind]
  if (convert === undefined) return reject(`The layer ${describeLayer(layer)} is not supported.`)
  const path = [...layer.within, layer.name].join("/")
  return convert({
    graph,
    layer,
    config: layer.config,
    input,
    operands,
    is_keras_3: convertFunctional.is_keras_3,
    weight: (...names) => {
      const found = convertFunctional.weight(layer, ...names)
      if (found !== undefined) counted.set(`${path}/${names[0]}`, elementCount(found.shape))
      return found
    },
    addWeight: (name, weight) => graph.weight(`${path}/${name}`, () => weight),
  })
}

/** Converts a call of a model with one value. */
const convertModel = (context: Context, model: Model, input: Value): Value =>
  model.is_sequence ? convertSequential(context, model, input) : network(context, model, input)

const convertSequential = (context: Context, { layers }: Model, input: Value) =>
  layers
    .filter(({ kind }) => kind !== "InputLayer")
    .reduce((value, layer) => convertLayer(context, layer, [value]), input)

/** Layers may be in any order: each call is converted once its operands are available. */
const network = (context: Context, model: Model, input: Value): Value => {
  const { inputs, outputs, name } = model
  const [from] = inputs
  const [to] = outputs
  if (from === undefined || to === undefined || inputs.length > 1 || outputs.length > 1) {
    return reject(
      `The model ${name} has ${inputs.length} inputs and ${outputs.length} outputs; only models ` +
        "with one of each are supported.",
    )
  }
  // The calls of a layer that is called once may be numbered from an earlier use of the model.
  const called_repeatedly = new Set(
    model.layers.flatMap((one) => (one.calls.length > 1 ? one.name : [])),
  )
  const keyOf = ({ layer, call, output }: Reference) =>
    JSON.stringify([layer, called_repeatedly.has(layer) ? call : 0, output])
  const values = new Map<string, Value>([[keyOf(from), input]])
  const isAvailable = (operand: Operand) => "constant" in operand || values.has(keyOf(operand.from))
  let pending = model.layers.flatMap((layer) =>
    layer.kind === "InputLayer"
      ? []
      : layer.calls.map((operands, call) => ({ layer, operands, call })),
  )
  while (pending.length > 0) {
    const blocked: typeof pending = []
    for (const each of pending) {
      if (!each.operands.every(isAvailable)) {
        blocked.push(each)
        continue
      }
      const { layer, call } = each
      const operands = each.operands.flatMap((operand): ReadonlyArray<Value | Constant> => {
        if ("constant" in operand) return [operand]
        const value = values.get(keyOf(operand.from))
        return value === undefined ? [] : [value]
      })
      values.set(
        keyOf({ layer: layer.name, call, output: 0 }),
        convertLayer(context, layer, operands),
      )
    }
    if (blocked.length === pending.length) break
    pending = blocked
  }
  return values.get(keyOf(to)) ?? reject(`The links between the layers of ${name} are broken.`)
}

/** Turns a single sigmoid, the probability of the second class, into two classes. */
const asClasses = (graph: GraphBuilder, value: Value, type: string | undefined) => {
  const [classes = 0] = value.shape
  if (value.shape.length !== 1 || classes < 1) {
    return reject(`The network ends in a tensor of [${value.shape.join(", ")}], not in classes.`)
  }
  if (classes > 1) return value
  if (type !== "Sigmoid") return reject("The network has one output, which is not a probability.")
  const first = graph.add("Sub", [graph.floats([1], [1]), value.name])
  return { name: graph.add("Concat", [first, value.name], { axis: 1 }), shape: [2] }
}

/** The final activation. */
const activationOf = (graph: OnnxGraph, { name, shape }: Value, type: string | undefined) => {
  if (sumsToOne(graph, name) || (type === "Sigmoid" && shape[0] === 1)) return "softmax"
  return type === "Sigmoid" ? "sigmoid" : "none"
}

/** Converts the network. Throws a ModelError. */
export const convertKeras = (network: Network): ConvertedModel => {
  const { model } = network
  checkLayers(model)
  checkInput(model)
  const graph = graphBuilder()
  const context: Context = { graph, network, parameter_counts: new Map() }
  const image = graph.add("Transpose", ["input"], { perm: [0, 3, 1, 2] })
  const end = convertModel(context, model, { name: image, shape: [side, side, 3] })
  const last = graph.producerOf(end.name)?.type
  const value = asClasses(graph, end, last)
  const [classes = 0] = value.shape
  const kinds = [...allLayers(model)].map(({ kind }) => kind)
  const probabilities = { name: graph.add("Identity", [value.name]), shape: ["N", classes] }
  const built = graph.build({ name: "input", shape: ["N", side, side, 3] }, probabilities)
  return {
    graph: built,
    classes,
    activation: activationOf(built, end, last),
    parameters: [...context.parameter_counts.values()].reduce((sum, count) => sum + count, 0),
    has_rescaling: expectsBytes(built, built.input.name),
    layers: kinds.length,
  }
}
