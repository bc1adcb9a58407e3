/**
 * What a Keras file says of its network, brought from the spellings of Keras 2 and 3 and of tfjs to
 * one: layers by name, and what each is called with.
 *
 * Source: plant facts 3; keras-team/keras, saving and legacy saving.
 */
import { unusable } from "../refusal.ts"

export type Json = Readonly<Record<string, unknown>>

/** One output of one call of a layer. */
export interface Reference {
  readonly layer: string
  readonly call: number
  readonly output: number
}

/** What a layer is called with: another's output, or a constant. */
export type Operand = { readonly from: Reference } | { readonly constant: unknown }

export interface Layer {
  readonly kind: string
  readonly name: string
  readonly config: Json
  /** The names of the models that it is in, the outermost first. */
  readonly within: ReadonlyArray<string>
  /** What it is called with, each time; empty in a sequence. */
  readonly calls: ReadonlyArray<ReadonlyArray<Operand>>
  /** Where it is a model itself. */
  readonly model: Model | undefined
}

export interface Model {
  readonly name: string
  readonly is_sequence: boolean
  readonly layers: ReadonlyArray<Layer>
  readonly inputs: ReadonlyArray<Reference>
  readonly outputs: ReadonlyArray<Reference>
}

/** Models within models: Keras itself nests two or three. */
const depth_max = 16
/** Layers in all, four times those of the largest network that Keras brings. */
const layers_max = 10_000

/** How an operation on two values names the second one. */
const second_names = ["y", "x2"]

const models = ["Sequential", "Functional", "Model"]

export const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : []

const textOf = (value: unknown, or: string) => (typeof value === "string" ? value : or)

/** Keras 3 wraps types and tuples. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (!isRecord(value) || value.class_name === "__keras_tensor__") return value
  if (value.class_name === "__tuple__") return plain(value.items)
  if (value.class_name === "DTypePolicy") return isRecord(value.config) ? value.config.name : null
  return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, plain(held)]))
}

const referenceOf = (value: unknown): Reference => {
  const [layer, call, output] = listOf(value)
  if (typeof layer !== "string") return unusable("The model's configuration has a broken link.")
  return { layer, call: Number(call ?? 0), output: Number(output ?? 0) }
}

/** One link alone stands without the list around it in Keras 3. */
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

/** Keras 2: each argument is [layer, call, output, { further arguments }], or a constant so. */
const oldOperands = (value: unknown): ReadonlyArray<Operand> => {
  const [layer, , constant, further] = listOf(value)
  const named = isRecord(further) ? further : {}
  const first: Operand = layer === "_CONSTANT_VALUE" ? { constant } : { from: referenceOf(value) }
  const others = second_names
    .filter((name) => name in named)
    .map((name): Operand => {
      const other = named[name]
      const is_link = Array.isArray(other) && typeof other[0] === "string"
      return is_link ? { from: referenceOf(other) } : { constant: other }
    })
  return [first, ...others]
}

const callOf = (value: unknown): ReadonlyArray<Operand> => {
  if (isRecord(value)) {
    const named = isRecord(value.kwargs) ? value.kwargs : {}
    const others = second_names.filter((name) => name in named).map((name) => named[name])
    return [...listOf(value.args), ...others].flatMap(operandOf)
  }
  const list = listOf(value)
  const calls = typeof list[0] === "string" ? [list] : list
  return calls.flatMap(oldOperands)
}

interface Counted {
  layers: number
}

const layerOf = (value: unknown, within: ReadonlyArray<string>, counted: Counted): Layer => {
  counted.layers++
  if (counted.layers > layers_max) return unusable(`The model has more than ${layers_max} layers.`)
  if (!isRecord(value)) return unusable("The model's configuration has a layer that is none.")
  const kind = textOf(value.class_name, "?")
  const config = isRecord(value.config) ? value.config : {}
  const name = textOf(config.name, textOf(value.name, kind))
  const is_model = models.includes(kind)
  return {
    kind,
    name: textOf(value.name, name),
    config,
    within,
    calls: listOf(value.inbound_nodes).map(callOf),
    model: is_model ? modelOf(value, within, counted) : undefined,
  }
}

const modelOf = (value: Json, outer: ReadonlyArray<string>, counted: Counted): Model => {
  if (outer.length >= depth_max) return unusable("The model has too many models in each other.")
  const { config } = value
  // The first versions of Keras 2 had the layers of a sequence there, and no more.
  const held: Json = isRecord(config) ? config : { layers: config }
  const name = textOf(held.name, textOf(value.name, "model"))
  const within = [...outer, name]
  const layers = listOf(held.layers).map((layer) => layerOf(layer, within, counted))
  if (layers.length === 0) return unusable("The model has no layers.")
  return {
    name,
    is_sequence: value.class_name === "Sequential",
    layers,
    inputs: referencesOf(held.input_layers),
    outputs: referencesOf(held.output_layers),
  }
}

/** The network of a Keras configuration. Throws a refusal where it is no sequence or graph. */
export const readConfig = (configuration: unknown): Model => {
  const config = plain(configuration)
  if (!isRecord(config)) return unusable("The model's configuration cannot be read.")
  const kind = textOf(config.class_name, "?")
  if (!models.includes(kind)) {
    return unusable(
      `The model is of the class ${printable(kind)}, and only a Sequential or Functional one can ` +
        "be read: export ONNX and set plant.model to it.",
    )
  }
  return modelOf(config, [], { layers: 0 })
}

/** A name out of a file, fit for one line. */
export const printable = (name: string) => name.replaceAll(/\p{Cc}/gu, "?").slice(0, 80)

/** Each layer, those of models in it included. */
export function* everyLayer({ layers }: Model): Generator<Layer> {
  for (const layer of layers) {
    yield layer
    if (layer.model !== undefined) yield* everyLayer(layer.model)
  }
}
