/** What a layer is converted with, and how its settings are read. */
import type { Graph, Value } from "../graph.ts"
import { isRecord, type Json, type Layer, listOf, printable } from "../keras/config.ts"
import { unusable } from "../refusal.ts"
import type { Weight } from "../weight.ts"

export interface Conversion {
  readonly graph: Graph
  readonly layer: Layer
  /** Its settings. */
  readonly config: Json
  /** What it is called with first. */
  readonly input: Value
  /** All that it is called with: values, and constants out of the configuration. */
  readonly operands: ReadonlyArray<Value | { readonly constant: unknown }>
  /** Its weight of one of these names; `absent` where it has none. */
  readonly weight: (...names: ReadonlyArray<string>) => Weight | undefined
  /** Puts one of its weights into the graph, as it is or made otherwise. */
  readonly place: (name: string, weight: Weight) => string
  /** Keras 3 computes some things in another way than Keras 2. */
  readonly is_keras_3: boolean
}

export type Convert = (conversion: Conversion) => Value

/** `conv1 (Conv2D)`, as a failure names it. */
export const titleOf = ({ name, kind }: Layer) => `${printable(name)} (${printable(kind)})`

/** Throws: the layer is of a kind that is known, and set in a way that is not. */
export const refuse = (layer: Layer, what: string): never =>
  unusable(
    `The layer ${titleOf(layer)} ${what}, which cannot be converted: export ONNX and set ` +
      "plant.model to it.",
  )

/** Its weight. Throws a refusal where it is not there, or has another shape. */
export const needed = (
  { layer, weight }: Conversion,
  names: ReadonlyArray<string>,
  shape: ReadonlyArray<number | undefined>,
): Weight => {
  const found = weight(...names)
  if (found === undefined) {
    return unusable(`The file holds no ${names[0]} of the layer ${titleOf(layer)}.`)
  }
  const fits =
    found.shape.length === shape.length &&
    found.shape.every((side, axis) => side > 0 && side === (shape[axis] ?? side))
  if (!fits) {
    return unusable(
      `The ${names[0]} of the layer ${titleOf(layer)} has the shape [${found.shape.join(", ")}].`,
    )
  }
  return found
}

export const numberOf = (config: Json, name: string, or: number) => {
  const value = config[name]
  // Keras writes an array of one number for some.
  const held = isRecord(value) ? value.value : value
  const number = Array.isArray(held) ? held[0] : held
  return typeof number === "number" && Number.isFinite(number) ? number : or
}

/** Two whole numbers of at least `least`, given as one or two. */
export const pairOf = ({ layer, config }: Conversion, name: string, or: number, least = 1) => {
  const value = config[name] ?? or
  const [first, second = first] = Array.isArray(value) ? value : [value]
  const is_whole = [first, second].every((side) => Number.isSafeInteger(side) && side >= least)
  if (!is_whole) return refuse(layer, `has the ${name} ${JSON.stringify(value)}`)
  return [Number(first), Number(second)] as const
}

/** Whole numbers of a setting. */
export const wholesOf = ({ layer, config }: Conversion, name: string): ReadonlyArray<number> => {
  const values = listOf(config[name])
  if (!values.every((value) => Number.isSafeInteger(value))) {
    return refuse(layer, `has the ${name} ${JSON.stringify(values)}`)
  }
  return values.map(Number)
}

/** The sides of an image. */
export const sidesOf = ({ layer, input }: Conversion) => {
  const [height, width, channels] = input.shape
  if (height === undefined || width === undefined || channels === undefined) {
    return refuse(layer, `is called with a tensor of ${input.shape.length} axes`)
  }
  return { height, width, channels }
}
