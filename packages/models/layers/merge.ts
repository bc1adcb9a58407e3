/** Layers of Keras that are called with several values, or with a value and constants. */
import { axisOf, perChannel, type Value } from "../graph.ts"
import type { Layer } from "../keras/config.ts"
import { activation_functions } from "./activation.ts"
import { type Conversion, type Convert, numberOf, refuse } from "./layer.ts"

/** Sides of 1 spread. */
const spread = ({ layer }: Conversion, one: Value, other: Value) => {
  if (one.shape.length !== other.shape.length) {
    return refuse(layer, "is called with tensors of different numbers of axes")
  }
  return one.shape.map((side, axis) => {
    const beside = other.shape[axis] ?? 1
    const fits = side === beside || side === 1 || beside === 1
    return fits ? Math.max(side, beside) : refuse(layer, "is called with sides that do not fit")
  })
}

/** Its operands as values; constants take the shape of the value that they meet. */
const valuesOf = (conversion: Conversion): ReadonlyArray<Value> => {
  const { graph, layer, operands, input } = conversion
  return operands.map((operand) => {
    if (!("constant" in operand)) return operand
    const { constant } = operand
    const numbers = (Array.isArray(constant) ? constant : [constant]).map(Number)
    const ones = input.shape.map(() => 1)
    const [only] = numbers
    if (numbers.length === 1 && only !== undefined && Number.isFinite(only)) {
      return { name: graph.floats([only]), shape: ones }
    }
    const channels = input.shape.at(-1) ?? 1
    if (numbers.length !== channels || !numbers.every(Number.isFinite)) {
      return refuse(layer, "is called with a constant")
    }
    const name = graph.floats(numbers, perChannel(input, channels))
    return { name, shape: [...ones.slice(1), channels] }
  })
}

const folded =
  (type: string): Convert =>
  (conversion) => {
    const { graph, layer } = conversion
    const [first, ...others] = valuesOf(conversion)
    if (first === undefined || others.length === 0) return refuse(layer, "is called with one value")
    return others.reduce(
      (sum, other) => ({
        name: graph.add(type, [sum.name, other.name]),
        shape: spread(conversion, sum, other),
      }),
      first,
    )
  }

const average: Convert = (conversion) => {
  const { graph, operands } = conversion
  const sum = folded("Add")(conversion)
  return { name: graph.add("Div", [sum.name, graph.floats([operands.length])]), shape: sum.shape }
}

const concatenate: Convert = (conversion) => {
  const { graph, config, input, layer } = conversion
  const values = valuesOf(conversion)
  const asked = numberOf(config, "axis", -1)
  const place = asked < 0 ? asked + input.shape.length : asked - 1
  const fits = values.every(
    ({ shape }) =>
      shape.length === input.shape.length &&
      shape.every((side, axis) => axis === place || side === input.shape[axis]),
  )
  if (place < 0 || place >= input.shape.length || !fits) {
    return refuse(layer, "is called with sides that do not fit")
  }
  const side = values.reduce((sum, { shape }) => sum + (shape[place] ?? 0), 0)
  const name = graph.add(
    "Concat",
    values.map((value) => value.name),
    { axis: axisOf(input, place + 1) },
  )
  return { name, shape: input.shape.with(place, side) }
}

/** Of Keras's own InceptionResNetV2: the first value, and the second by a factor. */
const scaledSum: Convert = (conversion) => {
  const { graph, config, layer } = conversion
  const [first, second, ...others] = valuesOf(conversion)
  if (first === undefined || second === undefined || others.length > 0) {
    return refuse(layer, "is not called with two values")
  }
  const scaled = graph.add("Mul", [second.name, graph.floats([numberOf(config, "scale", 1)])])
  return { name: graph.add("Add", [first.name, scaled]), shape: spread(conversion, first, second) }
}

/** What plain Python on tensors becomes in Keras 2: `x / 127.5` of a preprocess_input. */
const functions: Readonly<Record<string, Convert>> = {
  ...activation_functions,
  "math.truediv": folded("Div"),
  "math.divide": folded("Div"),
  "math.subtract": folded("Sub"),
  "math.add": folded("Add"),
  "math.multiply": folded("Mul"),
  "__operators__.add": folded("Add"),
  "__operators__.truediv": folded("Div"),
  "__operators__.sub": folded("Sub"),
  "__operators__.mul": folded("Mul"),
}

/** The function of a layer that is none of these; absent where all is well. */
export const strangeFunction = ({ kind, config }: Layer): string | undefined =>
  kind === "TFOpLambda" && !Object.hasOwn(functions, String(config.function))
    ? `function ${JSON.stringify(config.function) ?? "?"}`
    : undefined

const operation: Convert = (conversion) => {
  const convert = functions[String(conversion.config.function)]
  return convert === undefined
    ? refuse(conversion.layer, "has a function that is not known")
    : convert(conversion)
}

export const merges: Readonly<Record<string, Convert>> = {
  Add: folded("Add"),
  Subtract: folded("Sub"),
  Multiply: folded("Mul"),
  Maximum: folded("Max"),
  Minimum: folded("Min"),
  Average: average,
  Concatenate: concatenate,
  // The operations of Keras 3 on tensors; its Add, Subtract and Multiply are above.
  TrueDivide: folded("Div"),
  Divide: folded("Div"),
  TFOpLambda: operation,
  CustomScaleLayer: scaledSum,
  // As Keras 2 names it in an .h5.
  "Custom>CustomScaleLayer": scaledSum,
}
