/**
 * Writes an ONNX graph into a file, weight by weight: no more than a piece of one is held.
 *
 * ONNX IR 8, operators 17. Each weight's length is known before it is read, so that what stands
 * before it can be written first. Source: plant facts 3; onnx.proto3 of the ONNX project.
 */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs"
import { unusable } from "../refusal.ts"
import { countOf, type Weight } from "../weight.ts"
import { heading, integer, joined, message, real, text } from "./protobuf.ts"

/** A string, whole numbers, a float, or a whole number. */
export type Attribute = string | ReadonlyArray<number> | { readonly float: number } | number

export interface Operation {
  readonly type: string
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
  readonly attributes: Readonly<Record<string, Attribute>>
}

/** A constant of the graph: float32 weights, or 64-bit whole numbers. */
export type Constant =
  | { readonly name: string; readonly weight: Weight }
  | { readonly name: string; readonly integers: ReadonlyArray<number> }

/** A float32 tensor that goes in or comes out; a side that is a name is open. */
export interface Port {
  readonly name: string
  readonly sides: ReadonlyArray<number | string>
}

export interface OnnxGraph {
  readonly operations: ReadonlyArray<Operation>
  readonly constants: ReadonlyArray<Constant>
  readonly input: Port
  readonly output: Port
}

/** What one protobuf message may have. Source: plant facts 3; protobuf's own bound. */
const file_bytes_max = 2 ** 31 - 1

const ir_version = 8
const operators_version = 17
const type_float = 1
const type_int64 = 7

const attributeOf = (name: string, value: Attribute) => {
  const named = text(1, name)
  if (typeof value === "string") return joined(named, text(4, value), integer(20, 3))
  if (typeof value === "number") return joined(named, integer(3, value), integer(20, 2))
  if ("float" in value) return joined(named, real(2, value.float), integer(20, 1))
  return joined(named, ...value.map((item) => integer(8, item)), integer(20, 7))
}

const operationOf = ({ type, inputs, outputs, attributes }: Operation) =>
  message(
    1,
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, type),
    ...Object.entries(attributes).map(([name, value]) => message(5, attributeOf(name, value))),
  )

const portOf = (field: number, { name, sides }: Port) => {
  const shape = sides.map((side) =>
    message(1, typeof side === "string" ? text(2, side) : integer(1, side)),
  )
  const tensor = joined(integer(1, type_float), message(2, ...shape))
  return message(field, text(1, name), message(2, message(1, tensor)))
}

interface Placed {
  /** What stands before the values, the field's own head included. */
  readonly head: Uint8Array
  readonly bytes: number
  readonly parts: () => Iterable<Uint8Array>
}

const integersOf = (values: ReadonlyArray<number>) =>
  new Uint8Array(BigInt64Array.from(values, BigInt).buffer)

const placed = (constant: Constant): Placed => {
  const is_real = "weight" in constant
  const sides = is_real ? constant.weight.shape : [constant.integers.length]
  const bytes = countOf(sides) * (is_real ? 4 : 8)
  const about = joined(
    ...sides.map((side) => integer(1, side)),
    integer(2, is_real ? type_float : type_int64),
    text(8, constant.name),
    heading(9, bytes),
  )
  return {
    head: joined(heading(5, about.length + bytes), about),
    bytes,
    parts: () => (is_real ? rawOf(constant.weight) : [integersOf(constant.integers)]),
  }
}

function* rawOf({ parts }: Weight) {
  for (const { buffer, byteOffset, byteLength } of parts()) {
    yield new Uint8Array(buffer, byteOffset, byteLength)
  }
}

/** Writes the file. Throws a refusal where it would become too large, or a weight is short. */
export const writeOnnx = (path: string, graph: OnnxGraph) => {
  const constants = graph.constants.map(placed)
  const before = joined(...graph.operations.map(operationOf), text(2, "almanac"))
  const after = joined(portOf(11, graph.input), portOf(12, graph.output))
  const within = constants.reduce(
    (sum, { head, bytes }) => sum + head.length + bytes,
    before.length + after.length,
  )
  if (within > file_bytes_max) {
    unusable(
      `The network has ${Math.round(within / 2 ** 20)} MB of weights, and an ONNX file holds ` +
        "2048: export ONNX with external data and set plant.model to it.",
    )
  }
  const file = openSync(path, "wx", 0o600)
  try {
    const write = (bytes: Uint8Array) => {
      for (let place = 0; place < bytes.length; ) place += writeSync(file, bytes, place)
    }
    write(joined(integer(1, ir_version), text(2, "almanac"), heading(7, within), before))
    for (const { head, bytes, parts } of constants) {
      write(head)
      let left = bytes
      for (const part of parts()) {
        left -= part.length
        write(part)
      }
      if (left !== 0) unusable("A weight has another number of values than its shape says.")
    }
    write(after)
    write(message(8, text(1, ""), integer(2, operators_version)))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
