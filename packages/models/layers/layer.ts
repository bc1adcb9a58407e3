/** The context of a layer's conversion, and readers of its settings. */
import type { GraphBuilder, Value } from "../graph-builder.ts"
import { isRecord, type Json, type Layer, listOf, printable } from "../keras/config.ts"
import { export_advice, reject } from "../model-error.ts"
import type { Weight } from "../weight.ts"

export interface Conversion {
  readonly graph: GraphBuilder
  readonly layer: Layer
  /** The layer's settings. */
  readonly config: Json
  /** The first operand that is a value. */
  readonly input: Value
  /** All operands: values, and constants from the configuration. */
  readonly operands: ReadonlyArray<Value | { readonly constant: unknown }>
  /** The layer's first weight with one of these names. */
  readonly weight: (...names: ReadonlyArray<string>) => Weight | undefined
  /** Adds a weight to the graph and returns its name there. */
  readonly addWeight: (name: string, weight: Weight) => string
  /** Keras 3 computes some layers differently from Keras 2. */
  readonly is_keras_3: boolean
}

export type Convert = (conversion: Conversion) => Value

/** The layer in error messages, such as `conv1 (Conv2D)`. */
export const describeLayer = ({ name, kind }: Layer) => `${printable(name)} (${printable(kind)})`

/** Throws a ModelError: the layer is supported, but not with these settings. */
export const rejectLayer = (layer: Layer, problem: string): never =>
  reject(
    `The layer ${describeLayer(layer)} ${problem}, which cannot be converted: ${export_advice}.`,
  )

/** A weight of the layer. Throws a ModelError if it is missing or has another shape. */
export const requiredWeight = (
  { layer, weight }: Conversion,
  names: ReadonlyArray<string>,
  shape: ReadonlyArray<number | undefined>,
): Weight => {
  const found = weight(...names)
  if (found === undefined) {
    return reject(`The file contains no ${names[0]} for the layer ${describeLayer(layer)}.`)
  }
  const fits =
    found.shape.length === shape.length &&
    found.shape.every((side, axis) => side > 0 && side === (shape[axis] ?? side))
  if (!fits) {
    return reject(
      `The ${names[0]} of the layer ${describeLayer(layer)} has the shape ` +
        `[${found.shape.join(", ")}].`,
    )
  }
  return found
}

export const numberOf = (config: Json, name: string, fallback: number) => {
  const value = config[name]
  // Keras writes some numbers as an array of one.
  const wrapped = isRecord(value) ? value.value : value
  const number = Array.isArray(wrapped) ? wrapped[0] : wrapped
  return typeof number === "number" && Number.isFinite(number) ? number : fallback
}

/** Two integers of at least `minimum`, written as one or two. */
export const pairOf = (
  { layer, config }: Conversion,
  name: string,
  fallback: number,
  minimum = 1,
) => {
  const value = config[name] ?? fallback
  const [first, second = first] = Array.isArray(value) ? value : [value]
  const is_whole = [first, second].every((side) => Number.isSafeInteger(side) && side >= minimum)
  if (!is_whole) return rejectLayer(layer, `has the ${name} ${JSON.stringify(value)}`)
  return [Number(first), Number(second)] as const
}

/** A setting with a list of integers. */
export const integersOf = ({ layer, config }: Conversion, name: string): ReadonlyArray<number> => {
  const values = listOf(config[name])
  if (!values.every((value) => Number.isSafeInteger(value))) {
    return rejectLayer(layer, `has the ${name} ${JSON.stringify(values)}`)
  }
  return values.map(Number)
}

/** The input's shape. Throws a ModelError if it is not an image. */
export const imageShape = ({ layer, input }: Conversion) => {
  const [height, width, channels] = input.shape
  if (height === undefined || width === undefined || channels === undefined) {
    return rejectLayer(layer, `is called with a tensor of ${input.shape.length} axes`)
  }
  return { height, width, channels }
}
