/**
 * An ONNX graph in the making. Images are kept as [N, C, H, W], as ONNX Runtime computes them;
 * everything else, and every shape that is told here, as Keras has it.
 */
import type { Attribute, Constant, OnnxGraph, Operation, Port } from "./onnx/writer.ts"
import { type Weight, weightOf } from "./weight.ts"

export interface Value {
  readonly name: string
  /** As Keras has it, without the batch: [224, 224, 3] of an image, [38] of a vector. */
  readonly shape: ReadonlyArray<number>
}

export interface Graph {
  /** Adds an operation, and answers the name of what comes out. */
  readonly add: (
    type: string,
    inputs: ReadonlyArray<string>,
    attributes?: Readonly<Record<string, Attribute>>,
  ) => string
  /** A constant, in the graph once by its key. */
  readonly weight: (key: string, make: () => Weight) => string
  readonly floats: (values: ArrayLike<number>, shape?: ReadonlyArray<number>) => string
  readonly integers: (values: ReadonlyArray<number>) => string
  /** The operation that a value comes out of, past those that only bring it into shape. */
  readonly makerOf: (name: string) => Operation | undefined
  readonly end: (input: Port, output: Port) => OnnxGraph
}

/** Operations that only bring values into another shape. */
export const shapers: ReadonlyArray<string> = ["Identity", "Reshape", "Flatten", "Transpose"]

export const startGraph = (): Graph => {
  const operations: Array<Operation> = []
  const makers = new Map<string, Operation>()
  const constants = new Map<string, Constant>()
  const hold = (constant: Constant) => {
    constants.set(constant.name, constant)
    return constant.name
  }
  const makerOf = (name: string): Operation | undefined => {
    const maker = makers.get(name)
    const [from] = maker?.inputs ?? []
    const is_shaper = maker !== undefined && shapers.includes(maker.type)
    return is_shaper && from !== undefined ? makerOf(from) : maker
  }
  return {
    add: (type, inputs, attributes = {}) => {
      const name = `${type.toLowerCase()}_${operations.length}`
      const operation = { type, inputs, outputs: [name], attributes }
      operations.push(operation)
      makers.set(name, operation)
      return name
    },
    weight: (key, make) =>
      constants.has(`w:${key}`) ? `w:${key}` : hold({ name: `w:${key}`, weight: make() }),
    floats: (values, shape = []) =>
      hold({ name: `c:${constants.size}`, weight: weightOf(values, shape) }),
    integers: (integers) => hold({ name: `c:${constants.size}`, integers }),
    makerOf,
    end: (input, output) => ({ operations, constants: [...constants.values()], input, output }),
  }
}

export const isImage = ({ shape }: Value) => shape.length === 3

/** Where an axis of Keras, counted with the batch, lies in the graph. */
export const axisOf = ({ shape }: Value, axis: number) => {
  const plain = axis < 0 ? axis + shape.length + 1 : axis
  return shape.length === 3 ? ([0, 2, 3, 1][plain] ?? plain) : plain
}

/** The value with its axes in Keras's order, and back: for what goes through them in that order. */
export const inKerasOrder = (graph: Graph, value: Value) =>
  isImage(value) ? graph.add("Transpose", [value.name], { perm: [0, 2, 3, 1] }) : value.name

export const fromKerasOrder = (graph: Graph, name: string, shape: ReadonlyArray<number>): Value =>
  shape.length === 3
    ? { name: graph.add("Transpose", [name], { perm: [0, 3, 1, 2] }), shape }
    : { name, shape }

/** A constant for each channel, shaped so that it spreads over an image. */
export const perChannel = (value: Value, count: number) =>
  isImage(value) ? [count, 1, 1] : [count]
