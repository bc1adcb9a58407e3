/**
 * Analyses a graph's input and output: whether it rescales bytes itself, and whether its outputs
 * are probabilities. Pure.
 *
 * Source: plant facts 1 and 3; decision 0102.
 */
import { reshaping_operations } from "./graph-builder.ts"
import type { Constant, OnnxGraph, Operation } from "./onnx/writer.ts"
import { elementCount, readValues } from "./weight.ts"

type GraphContents = Pick<OnnxGraph, "operations" | "constants">

/** A factor below it scales 0..255 to about 0..1. */
const byte_scale_max = 0.02
/** A constant is a scalar or has one value for each channel. */
const channels = 3
/** For weights that should sum to one. */
const tolerance = 1e-6

/** Looks up constants by name: a scalar, or one value for each channel. */
const constantFactors = (constants: ReadonlyArray<Constant>) => {
  const by_name = new Map(constants.map((constant) => [constant.name, constant]))
  return (name: string | undefined): Float32Array | undefined => {
    const found = by_name.get(name ?? "")
    if (found === undefined || !("weight" in found)) return undefined
    return elementCount(found.weight.shape) <= channels ? readValues(found.weight) : undefined
  }
}

const largestMagnitude = (values: Float32Array) => Math.max(...values.map(Math.abs))

/** The factor of an operation that only scales or shifts; undefined for any other. */
const scaleFactor = (
  { type, inputs: [, second] }: Operation,
  factors: ReturnType<typeof constantFactors>,
): number | undefined => {
  if (reshaping_operations.includes(type) || type === "Pad") return 1
  const constant = factors(second)
  if (constant === undefined) return undefined
  if (type === "Add" || type === "Sub") return 1
  if (type === "Mul") return largestMagnitude(constant)
  return type === "Div" ? 1 / Math.min(...constant.map(Math.abs)) : undefined
}

/**
 * Whether the network was trained on bytes 0 to 255: the operations before the first layer together
 * scale its input down. A division after the first layer is not counted.
 */
export const expectsBytes = (graph: GraphContents, input: string): boolean => {
  const factors = constantFactors(graph.constants)
  const scales = new Map([[input, 1]])
  let smallest_scale = Number.POSITIVE_INFINITY
  for (const operation of graph.operations) {
    const [first = ""] = operation.inputs
    const scale = scales.get(first)
    if (scale === undefined) continue
    const factor = scaleFactor(operation, factors)
    if (factor === undefined) smallest_scale = Math.min(smallest_scale, scale)
    else for (const output of operation.outputs) scales.set(output, scale * factor)
  }
  return smallest_scale < byte_scale_max
}

/**
 * Whether the rows of a value sum to one, as after a softmax: also a mean of several softmaxes,
 * weighted or not, or a mean over all positions of an image.
 */
export const sumsToOne = (graph: GraphContents, name: string): boolean => {
  const factors = constantFactors(graph.constants)
  const producers = new Map(graph.operations.map((each) => [each.outputs[0], each]))
  /** The sum of a row; NaN if unknown. */
  const sumOf = (value: string | undefined): number => {
    const producer = producers.get(value ?? "")
    if (producer === undefined) return Number.NaN
    const { type, inputs } = producer
    const [first, second] = inputs
    if (type === "Softmax") return 1
    if (reshaping_operations.includes(type) || type === "GlobalAveragePool") return sumOf(first)
    if (type === "Add") return sumOf(first) + sumOf(second)
    const [constant = Number.NaN, ...others] = factors(second) ?? []
    if (others.length > 0) return Number.NaN
    if (type === "Mul" && constant > 0) return sumOf(first) * constant
    return type === "Div" && constant > 0 ? sumOf(first) / constant : Number.NaN
  }
  return Math.abs(sumOf(name) - 1) < tolerance
}
