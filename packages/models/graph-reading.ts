/**
 * What a graph says of the numbers that go in and come out: whether it divides bytes of colour
 * itself, and whether its outputs are probabilities. Pure.
 *
 * Source: plant facts 1 and 3; decision 0102.
 */
import { shapers } from "./graph.ts"
import type { Constant, OnnxGraph, Operation } from "./onnx/writer.ts"
import { countOf, valuesOf } from "./weight.ts"

type Read = Pick<OnnxGraph, "operations" | "constants">

/** A factor below it brings 0..255 near 0..1; one above it does not. */
const byte_scale_max = 0.02
/** Constants of colours are one number, or one for each colour. */
const colours = 3
/** Of parts that are to be one together. */
const rounding = 1e-6

/** The constants that a colour, or a probability, is multiplied by. */
const factorsOf = (constants: ReadonlyArray<Constant>) => {
  const by_name = new Map(constants.map((constant) => [constant.name, constant]))
  return (name: string | undefined): Float32Array | undefined => {
    const found = by_name.get(name ?? "")
    if (found === undefined || !("weight" in found)) return undefined
    return countOf(found.weight.shape) <= colours ? valuesOf(found.weight) : undefined
  }
}

const largest = (values: Float32Array) => Math.max(...values.map(Math.abs))

/** What a step multiplies the colours by; undefined where it does more than move and scale them. */
const scaledBy = (
  { type, inputs: [, second] }: Operation,
  factors: ReturnType<typeof factorsOf>,
): number | undefined => {
  if (shapers.includes(type) || type === "Pad") return 1
  const constant = factors(second)
  if (constant === undefined) return undefined
  if (type === "Add" || type === "Sub") return 1
  if (type === "Mul") return largest(constant)
  return type === "Div" ? 1 / Math.min(...constant.map(Math.abs)) : undefined
}

/**
 * Whether what sees the colours first sees those of bytes 0 to 255 divided, by all that stands
 * before it together: then the network was trained on bytes. A division further on says nothing.
 */
export const takesBytes = (graph: Read, input: string): boolean => {
  const factors = factorsOf(graph.constants)
  const scales = new Map([[input, 1]])
  let seen = Number.POSITIVE_INFINITY
  for (const operation of graph.operations) {
    const [first = ""] = operation.inputs
    const scale = scales.get(first)
    if (scale === undefined) continue
    const by = scaledBy(operation, factors)
    if (by === undefined) seen = Math.min(seen, scale)
    else for (const output of operation.outputs) scales.set(output, scale * by)
  }
  return seen < byte_scale_max
}

/**
 * Whether the rows of a value are probabilities that sum to one, as after a softmax: also as a
 * mean of several, weighted or not, or of one for each place of an image.
 */
export const sumsToOne = (graph: Read, name: string): boolean => {
  const factors = factorsOf(graph.constants)
  const makers = new Map(graph.operations.map((each) => [each.outputs[0], each]))
  /** The sum of a row; NaN where that is not known. */
  const sumOf = (value: string | undefined): number => {
    const maker = makers.get(value ?? "")
    if (maker === undefined) return Number.NaN
    const { type, inputs } = maker
    const [first, second] = inputs
    if (type === "Softmax") return 1
    if (shapers.includes(type) || type === "GlobalAveragePool") return sumOf(first)
    if (type === "Add") return sumOf(first) + sumOf(second)
    const [constant = Number.NaN, ...others] = factors(second) ?? []
    if (others.length > 0) return Number.NaN
    if (type === "Mul" && constant > 0) return sumOf(first) * constant
    return type === "Div" && constant > 0 ? sumOf(first) / constant : Number.NaN
  }
  return Math.abs(sumOf(name) - 1) < rounding
}
