/**
 * Normalizes the model configurations of Keras 2, Keras 3 and tfjs to one form: layers by name,
 * with the operands of each call.
 *
 * Source: plant facts 3; keras-team/keras, saving and legacy saving.
 */
import { reject } from "../model-error.ts"

export type Json = Readonly<Record<string, unknown>>

/** One output of one call of a layer. */
export interface Reference {
  readonly layer: string
  readonly call: number
  readonly output: number
}

/** An operand of a call: another layer's output, or a constant. */
export type Operand = { readonly from: Reference } | { readonly constant: unknown }

export interface Layer {
  readonly kind: string
  readonly name: string
  readonly config: Json
  /** The names of the enclosing models, outermost first. */
  readonly within: ReadonlyArray<string>
  /** The operands of each call; empty in a Sequential model. */
  readonly calls: ReadonlyArray<ReadonlyArray<Operand>>
  /** Defined if the layer is a nested model. */
  readonly model: Model | undefined
}

export interface Model {
  readonly name: string
  readonly is_sequence: boolean
  readonly layers: ReadonlyArray<Layer>
  readonly inputs: ReadonlyArray<Reference>
  readonly outputs: ReadonlyArray<Reference>
}

/** The depth of nested models: Keras's own have two or three levels. */
const depth_max = 16
/** Four times as many layers as the largest of Keras's own networks. */
const layers_max = 10_000

/** The names of the second operand of a binary operation. */
const second_operand_names = ["y", "x2"]

const model_classes = ["Sequential", "Functional", "Model"]

export const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : []

const textOf = (value: unknown, fallback: string) => (typeof value === "string" ? value : fallback)

/** Unwraps the objects that Keras 3 writes for types and tuples. */
const unwrap = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(unwrap)
  if (!isRecord(value) || value.class_name === "__keras_tensor__") return value
  if (value.class_name === "__tuple__") return unwrap(value.items)
  if (value.class_name === "DTypePolicy") return isRecord(value.config) ? value.config.name : null
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unwrap(item)]))
}

const referenceOf = (value: unknown): Reference => {
  const [layer, call, output] = listOf(value)
  if (typeof layer !== "string") return reject("The model's configuration has a broken link.")
  return { layer, call: Number(call ?? 0), output: Number(output ?? 0) }
}

/** Keras 3 writes a single link without the list around it. */
const referencesOf = (value: unknown) => {
  const list = listOf(value)
  return (typeof list[0] === "string" ? [list] : list).map(referenceOf)
}

const operandOf = (value: unknown): ReadonlyArray<Operand> => {
  if (Array.isArray(value) && !value.every((item) => typeof item === "number")) {
    return value.flatMap(operandOf)
  }
  if (isRecord(value) && value.class_name === "__keras_tensor__") {
    const history = isRecord(value.config) ? value.config.keras_history : undefined
    return [{ from: referenceOf(history) }]
  }
  return [{ constant: value }]
}

/** Keras 2 writes each argument as [layer, call, output, { kwargs }], constants too. */
const keras2Operands = (value: unknown): ReadonlyArray<Operand> => {
  const [layer, , constant, kwargs] = listOf(value)
  const kwargs_record = isRecord(kwargs) ? kwargs : {}
  const first: Operand = layer === "_CONSTANT_VALUE" ? { constant } : { from: referenceOf(value) }
  const others = second_operand_names
    .filter((name) => name in kwargs_record)
    .map((name): Operand => {
      const other = kwargs_record[name]
      const is_link = Array.isArray(other) && typeof other[0] === "string"
      return is_link ? { from: referenceOf(other) } : { constant: other }
    })
  return [first, ...others]
}

const callOf = (value: unknown): ReadonlyArray<Operand> => {
  if (isRecord(value)) {
    const kwargs = isRecord(value.kwargs) ? value.kwargs : {}
    const others = second_operand_names.filter((name) => name in kwargs).map((name) => kwargs[name])
    return [...listOf(value.args), ...others].flatMap(operandOf)
  }
  const list = listOf(value)
  const calls = typeof list[0] === "string" ? [list] : list
  return calls.flatMap(keras2Operands)
}

interface LayerCount {
  layers: number
}

const layerOf = (value: unknown, within: ReadonlyArray<string>, counted: LayerCount): Layer => {
  counted.layers++
  if (counted.layers > layers_max) return reject(`The model has more than ${layers_max} layers.`)
  if (!isRecord(value))
    return reject("The model's configuration has a layer that is not an object.")
  const kind = textOf(value.class_name, "?")
  const config = isRecord(value.config) ? value.config : {}
  const name = textOf(config.name, textOf(value.name, kind))
  const is_model = model_classes.includes(kind)
  return {
    kind,
    name: textOf(value.name, name),
    config,
    within,
    calls: listOf(value.inbound_nodes).map(callOf),
    model: is_model ? modelOf(value, within, counted) : undefined,
  }
}

const modelOf = (value: Json, outer: ReadonlyArray<string>, counted: LayerCount): Model => {
  if (outer.length >= depth_max) return reject("The model has too many levels of nested models.")
  const { config } = value
  // The first versions of Keras 2 wrote a Sequential model as a list of layers.
  const settings: Json = isRecord(config) ? config : { layers: config }
  const name = textOf(settings.name, textOf(value.name, "model"))
  const within = [...outer, name]
  const layers = listOf(settings.layers).map((layer) => layerOf(layer, within, counted))
  if (layers.length === 0) return reject("The model has no layers.")
  return {
    name,
    is_sequence: value.class_name === "Sequential",
    layers,
    inputs: referencesOf(settings.input_layers),
    outputs: referencesOf(settings.output_layers),
  }
}

/** Parses a Keras configuration. Throws a ModelError if it is not Sequential or Functional. */
export const readConfig = (configuration: unknown): Model => {
  const config = unwrap(configuration)
  if (!isRecord(config)) return reject("The model's configuration cannot be read.")
  const kind = textOf(config.class_name, "?")
  if (!model_classes.includes(kind)) {
    return reject(
      `The model has the class ${printable(kind)}, but only Sequential and Functional models can ` +
        "be read: export ONNX and set plant.model to it.",
    )
  }
  return modelOf(config, [], { layers: 0 })
}

/** A name from an untrusted file, made safe to print on one line. */
export const printable = (name: string) => name.replaceAll(/\p{Cc}/gu, "?").slice(0, 80)

/** All layers, including those of nested models. */
export function* allLayers({ layers }: Model): Generator<Layer> {
  for (const layer of layers) {
    yield layer
    if (layer.model !== undefined) yield* allLayers(layer.model)
  }
}
