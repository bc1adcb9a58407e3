/** Converts layers with several inputs, or with an input and constants. */
import { axisOf, perChannel, type Value } from "../graph-builder.ts"
import type { Layer } from "../keras/config.ts"
import { activation_functions } from "./activation.ts"
import { type Conversion, type Convert, numberOf, rejectLayer } from "./layer.ts"

/** The shape after broadcasting. */
const broadcastShape = ({ layer }: Conversion, one: Value, other: Value) => {
  if (one.shape.length !== other.shape.length) {
    return rejectLayer(layer, "is called with tensors of different numbers of axes")
  }
  return one.shape.map((side, axis) => {
    const other_side = other.shape[axis] ?? 1
    const fits = side === other_side || side === 1 || other_side === 1
    return fits
      ? Math.max(side, other_side)
      : rejectLayer(layer, "is called with shapes that do not match")
  })
}

/** The operands as values; constants are shaped to broadcast with the input. */
const operandValues = (conversion: Conversion): ReadonlyArray<Value> => {
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
      return rejectLayer(layer, "is called with a constant")
    }
    const name = graph.floats(numbers, perChannel(input, channels))
    return { name, shape: [...ones.slice(1), channels] }
  })
}

const elementwise =
  (type: string): Convert =>
  (conversion) => {
    const { graph, layer } = conversion
    const [first, ...others] = operandValues(conversion)
    if (first === undefined || others.length === 0)
      return rejectLayer(layer, "is called with one value")
    return others.reduce(
      (sum, other) => ({
        name: graph.add(type, [sum.name, other.name]),
        shape: broadcastShape(conversion, sum, other),
      }),
      first,
    )
  }

const average: Convert = (conversion) => {
  const { graph, operands } = conversion
  const sum = elementwise("Add")(conversion)
  return { name: graph.add("Div", [sum.name, graph.floats([operands.length])]), shape: sum.shape }
}

const concatenate: Convert = (conversion) => {
  const { graph, config, input, layer } = conversion
  const values = operandValues(conversion)
  const axis_setting = numberOf(config, "axis", -1)
  const concat_axis = axis_setting < 0 ? axis_setting + input.shape.length : axis_setting - 1
  const fits = values.every(
    ({ shape }) =>
      shape.length === input.shape.length &&
      shape.every((side, axis) => axis === concat_axis || side === input.shape[axis]),
  )
  if (concat_axis < 0 || concat_axis >= input.shape.length || !fits) {
    return rejectLayer(layer, "is called with shapes that do not match")
  }
  const side = values.reduce((sum, { shape }) => sum + (shape[concat_axis] ?? 0), 0)
  const name = graph.add(
    "Concat",
    values.map((value) => value.name),
    { axis: axisOf(input, concat_axis + 1) },
  )
  return { name, shape: input.shape.with(concat_axis, side) }
}

/** Keras's InceptionResNetV2: the first value plus the second times a factor. */
const scaledSum: Convert = (conversion) => {
  const { graph, config, layer } = conversion
  const [first, second, ...others] = operandValues(conversion)
  if (first === undefined || second === undefined || others.length > 0) {
    return rejectLayer(layer, "is not called with two values")
  }
  const scaled = graph.add("Mul", [second.name, graph.floats([numberOf(config, "scale", 1)])])
  return {
    name: graph.add("Add", [first.name, scaled]),
    shape: broadcastShape(conversion, first, second),
  }
}

/** Python operators on tensors in Keras 2, such as `x / 127.5` in a preprocess_input. */
const functions: Readonly<Record<string, Convert>> = {
  ...activation_functions,
  "math.truediv": elementwise("Div"),
  "math.divide": elementwise("Div"),
  "math.subtract": elementwise("Sub"),
  "math.add": elementwise("Add"),
  "math.multiply": elementwise("Mul"),
  "__operators__.add": elementwise("Add"),
  "__operators__.truediv": elementwise("Div"),
  "__operators__.sub": elementwise("Sub"),
  "__operators__.mul": elementwise("Mul"),
}

/** Describes a layer's function if it is not supported. */
export const unsupportedFunction = ({ kind, config }: Layer): string | undefined =>
  kind === "TFOpLambda" && !Object.hasOwn(functions, String(config.function))
    ? `function ${JSON.stringify(config.function) ?? "?"}`
    : undefined

const operation: Convert = (conversion) => {
  const convert = functions[String(conversion.config.function)]
  return convert === undefined
    ? rejectLayer(conversion.layer, "has an unsupported function")
    : convert(conversion)
}

export const merges: Readonly<Record<string, Convert>> = {
  Add: elementwise("Add"),
  Subtract: elementwise("Sub"),
  Multiply: elementwise("Mul"),
  Maximum: elementwise("Max"),
  Minimum: elementwise("Min"),
  Average: average,
  Concatenate: concatenate,
  // Keras 3 operations on tensors; its Add, Subtract and Multiply are above.
  TrueDivide: elementwise("Div"),
  Divide: elementwise("Div"),
  TFOpLambda: operation,
  CustomScaleLayer: scaledSum,
  // The name of CustomScaleLayer in an .h5 of Keras 2.
  "Custom>CustomScaleLayer": scaledSum,
}
