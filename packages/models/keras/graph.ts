/**
 * A Keras network as an ONNX graph: the input float32[N, 224, 224, 3], the output float32[N, K].
 *
 * Source: plant facts 3; decisions of document 3, plant model.
 */

import { side } from "#schemas/image-side.ts"
import { type Graph, startGraph, type Value } from "../graph.ts"
import { sumsToOne, takesBytes } from "../graph-reading.ts"
import { activation_layers, strangeActivation } from "../layers/activation.ts"
import { convolutions } from "../layers/conv.ts"
import { type Convert, titleOf } from "../layers/layer.ts"
import { merges, strangeFunction } from "../layers/merge.ts"
import { normalizations } from "../layers/norm.ts"
import { image_layers } from "../layers/pool.ts"
import { shape_layers } from "../layers/shape.ts"
import type { Network } from "../network.ts"
import type { OnnxGraph } from "../onnx/writer.ts"
import { export_onnx, unusable } from "../refusal.ts"
import { countOf } from "../weight.ts"
import { everyLayer, type Layer, type Model, type Operand, type Reference } from "./config.ts"

const layers: Readonly<Record<string, Convert>> = {
  ...convolutions,
  ...image_layers,
  ...activation_layers,
  ...normalizations,
  ...shape_layers,
  ...merges,
}

export interface Converted {
  readonly graph: OnnxGraph
  readonly classes: number
  readonly activation: "softmax" | "sigmoid" | "none"
  readonly parameters: number
  readonly has_rescaling: boolean
  /** Layers, those of models in it counted one by one. */
  readonly layers: number
}

/** How many layers one line names. */
const named_max = 12

const strange = (layer: Layer): string | undefined => {
  if (layer.model !== undefined || layer.kind === "InputLayer") return undefined
  if (!Object.hasOwn(layers, layer.kind)) return titleOf(layer)
  if (layer.config.data_format === "channels_first") {
    return `${titleOf(layer)} with channels first`
  }
  const about = strangeActivation(layer) ?? strangeFunction(layer)
  return about === undefined ? undefined : `${titleOf(layer)} with the ${about}`
}

/** Throws, naming every layer that cannot be converted. */
const checkLayers = (model: Model) => {
  const found = [...everyLayer(model)].flatMap((layer) => strange(layer) ?? [])
  if (found.length === 0) return
  const some = found.slice(0, named_max).join(", ")
  const more = found.length > named_max ? ` and ${found.length - named_max} more` : ""
  unusable(`These layers cannot be converted: ${some}${more}. Please ${export_onnx}.`)
}

/** Throws where the network says that it takes other images. */
const checkInput = (model: Model) => {
  for (const { config, kind } of everyLayer(model)) {
    const shape = config.batch_shape ?? config.batch_input_shape
    if (!Array.isArray(shape)) continue
    const [, ...sides] = shape
    const fits = sides.length === 3 && [side, side, 3].every((is, at) => (sides[at] ?? is) === is)
    if (!fits) {
      unusable(
        `The network takes tensors of ${sides.join(" x ")}, and images are served as ${side} x ` +
          `${side} x 3: train it for these, or ${export_onnx}.`,
      )
    }
    if (kind === "InputLayer") return
  }
}

type Constant = { readonly constant: unknown }

interface Walk {
  readonly graph: Graph
  readonly network: Network
  readonly counted: Map<string, number>
}

/** One call of a layer. */
const called = (walk: Walk, layer: Layer, operands: ReadonlyArray<Value | Constant>): Value => {
  const { graph, network, counted } = walk
  const input = operands.find((operand) => "name" in operand)
  if (input === undefined) return unusable(`The layer ${titleOf(layer)} is called with nothing.`)
  if (layer.model !== undefined) return walked(walk, layer.model, input)
  const convert = layers[layer.kind]
  if (convert === undefined) return unusable(`The layer ${titleOf(layer)} is not known.`)
  const path = [...layer.within, layer.name].join("/")
  return convert({
    graph,
    layer,
    config: layer.config,
    input,
    operands,
    is_keras_3: network.is_keras_3,
    weight: (...names) => {
      const found = network.weight(layer, ...names)
      if (found !== undefined) counted.set(`${path}/${names[0]}`, countOf(found.shape))
      return found
    },
    place: (name, weight) => graph.weight(`${path}/${name}`, () => weight),
  })
}

/** A model called with one value. */
const walked = (walk: Walk, model: Model, input: Value): Value =>
  model.is_sequence ? sequence(walk, model, input) : network(walk, model, input)

const sequence = (walk: Walk, { layers }: Model, input: Value) =>
  layers
    .filter(({ kind }) => kind !== "InputLayer")
    .reduce((value, layer) => called(walk, layer, [value]), input)

/** Layers of a file may come in any order: each is called when what it takes is there. */
const network = (walk: Walk, model: Model, input: Value): Value => {
  const { inputs, outputs, name } = model
  const [from] = inputs
  const [to] = outputs
  if (from === undefined || to === undefined || inputs.length > 1 || outputs.length > 1) {
    return unusable(
      `The model ${name} has ${inputs.length} inputs and ${outputs.length} outputs, and one of ` +
        "each is served.",
    )
  }
  // A model that was used elsewhere before counts its calls from there.
  const often = new Set(model.layers.flatMap((one) => (one.calls.length > 1 ? one.name : [])))
  const keyOf = ({ layer, call, output }: Reference) =>
    JSON.stringify([layer, often.has(layer) ? call : 0, output])
  const values = new Map<string, Value>([[keyOf(from), input]])
  const known = (operand: Operand) => "constant" in operand || values.has(keyOf(operand.from))
  let waiting = model.layers.flatMap((layer) =>
    layer.kind === "InputLayer"
      ? []
      : layer.calls.map((operands, call) => ({ layer, operands, call })),
  )
  while (waiting.length > 0) {
    const later: typeof waiting = []
    for (const each of waiting) {
      if (!each.operands.every(known)) {
        later.push(each)
        continue
      }
      const { layer, call } = each
      const operands = each.operands.flatMap((operand): ReadonlyArray<Value | Constant> => {
        if ("constant" in operand) return [operand]
        const value = values.get(keyOf(operand.from))
        return value === undefined ? [] : [value]
      })
      values.set(keyOf({ layer: layer.name, call, output: 0 }), called(walk, layer, operands))
    }
    if (later.length === waiting.length) break
    waiting = later
  }
  return values.get(keyOf(to)) ?? unusable(`The links between the layers of ${name} are broken.`)
}

/** A single sigmoid says how likely the second of two classes is. */
const ended = (graph: Graph, value: Value, type: string | undefined) => {
  const [classes = 0] = value.shape
  if (value.shape.length !== 1 || classes < 1) {
    return unusable(`The network ends in a tensor of [${value.shape.join(", ")}], not in classes.`)
  }
  if (classes > 1) return value
  if (type !== "Sigmoid") return unusable("The network has one output, and that is no probability.")
  const first = graph.add("Sub", [graph.floats([1], [1]), value.name])
  return { name: graph.add("Concat", [first, value.name], { axis: 1 }), shape: [2] }
}

/** What makes the outputs, of a graph that ends in `end`. */
const activationOf = (graph: OnnxGraph, { name, shape }: Value, type: string | undefined) => {
  if (sumsToOne(graph, name) || (type === "Sigmoid" && shape[0] === 1)) return "softmax"
  return type === "Sigmoid" ? "sigmoid" : "none"
}

/** Converts the network. Throws a refusal, naming every layer that cannot be. */
export const convertKeras = (network: Network): Converted => {
  const { model } = network
  checkLayers(model)
  checkInput(model)
  const graph = startGraph()
  const walk: Walk = { graph, network, counted: new Map() }
  const image = graph.add("Transpose", ["input"], { perm: [0, 3, 1, 2] })
  const end = walked(walk, model, { name: image, shape: [side, side, 3] })
  const last = graph.makerOf(end.name)?.type
  const value = ended(graph, end, last)
  const [classes = 0] = value.shape
  const kinds = [...everyLayer(model)].map(({ kind }) => kind)
  const probabilities = { name: graph.add("Identity", [value.name]), sides: ["N", classes] }
  const whole = graph.end({ name: "input", sides: ["N", side, side, 3] }, probabilities)
  return {
    graph: whole,
    classes,
    activation: activationOf(whole, end, last),
    parameters: [...walk.counted.values()].reduce((sum, count) => sum + count, 0),
    has_rescaling: takesBytes(whole, whole.input.name),
    layers: kinds.length,
  }
}
