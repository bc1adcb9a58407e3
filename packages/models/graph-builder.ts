/**
 * Builds an ONNX graph from Keras layers. Images are NCHW in the graph, the layout of ONNX Runtime.
 * All shapes in this interface are in Keras's order, NHWC without the batch.
 */
import type { Attribute, Constant, OnnxGraph, Operation, ValueInfo } from "./onnx/writer.ts"
import { type Weight, weightOf } from "./weight.ts"

export interface Value {
  readonly name: string
  /** In Keras's order, without the batch: [224, 224, 3] for an image, [38] for a vector. */
  readonly shape: ReadonlyArray<number>
}

export interface GraphBuilder {
  /** Adds an operation and returns the name of its output. */
  readonly add: (
    type: string,
    inputs: ReadonlyArray<string>,
    attributes?: Readonly<Record<string, Attribute>>,
  ) => string
  /** Adds a constant once per key and returns its name. */
  readonly weight: (key: string, make: () => Weight) => string
  readonly floats: (values: ArrayLike<number>, shape?: ReadonlyArray<number>) => string
  readonly integers: (values: ReadonlyArray<number>) => string
  /** The operation that computes a value, ignoring those that only reshape it. */
  readonly producerOf: (name: string) => Operation | undefined
  readonly build: (input: ValueInfo, output: ValueInfo) => OnnxGraph
}

/** Operations that only change the shape of a value. */
export const reshaping_operations: ReadonlyArray<string> = [
  "Identity",
  "Reshape",
  "Flatten",
  "Transpose",
]

export const graphBuilder = (): GraphBuilder => {
  const operations: Array<Operation> = []
  const producers = new Map<string, Operation>()
  const constants = new Map<string, Constant>()
  const addConstant = (constant: Constant) => {
    constants.set(constant.name, constant)
    return constant.name
  }
  const makerOf = (name: string): Operation | undefined => {
    const producer = producers.get(name)
    const [from] = producer?.inputs ?? []
    const is_reshaping = producer !== undefined && reshaping_operations.includes(producer.type)
    return is_reshaping && from !== undefined ? makerOf(from) : producer
  }
  return {
    add: (type, inputs, attributes = {}) => {
      const name = `${type.toLowerCase()}_${operations.length}`
      const operation = { type, inputs, outputs: [name], attributes }
      operations.push(operation)
      producers.set(name, operation)
      return name
    },
    weight: (key, make) =>
      constants.has(`w:${key}`) ? `w:${key}` : addConstant({ name: `w:${key}`, weight: make() }),
    floats: (values, shape = []) =>
      addConstant({ name: `c:${constants.size}`, weight: weightOf(values, shape) }),
    integers: (integers) => addConstant({ name: `c:${constants.size}`, integers }),
    producerOf: makerOf,
    build: (input, output) => ({ operations, constants: [...constants.values()], input, output }),
  }
}

export const isImage = ({ shape }: Value) => shape.length === 3

/** Maps an axis of Keras, counted with the batch, to the axis in the graph. */
export const axisOf = ({ shape }: Value, axis: number) => {
  const plain = axis < 0 ? axis + shape.length + 1 : axis
  return shape.length === 3 ? ([0, 2, 3, 1][plain] ?? plain) : plain
}

/** Transposes an image to NHWC, for operations that depend on the order of the axes. */
export const toNhwc = (graph: GraphBuilder, value: Value) =>
  isImage(value) ? graph.add("Transpose", [value.name], { perm: [0, 2, 3, 1] }) : value.name

export const fromNhwc = (graph: GraphBuilder, name: string, shape: ReadonlyArray<number>): Value =>
  shape.length === 3
    ? { name: graph.add("Transpose", [name], { perm: [0, 3, 1, 2] }), shape }
    : { name, shape }

/** The shape of a constant per channel that broadcasts over an image. */
export const perChannel = (value: Value, count: number) =>
  isImage(value) ? [count, 1, 1] : [count]
