/**
 * Writes an ONNX graph to a file, streaming each weight in parts.
 *
 * ONNX IR 8, opset 17. The length of each weight follows from its shape, so length prefixes are
 * written before the weight is read. Source: plant facts 3; onnx.proto3 of the ONNX project.
 */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs"
import { reject } from "../model-error.ts"
import { elementCount, type Weight } from "../weight.ts"
import { concat, float, integer, lengthPrefix, message, text } from "./protobuf.ts"

/** A string, a list of integers, a float, or an integer. */
export type Attribute = string | ReadonlyArray<number> | { readonly float: number } | number

export interface Operation {
  readonly type: string
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
  readonly attributes: Readonly<Record<string, Attribute>>
}

/** An initializer: float32 weights or 64-bit integers. */
export type Constant =
  | { readonly name: string; readonly weight: Weight }
  | { readonly name: string; readonly integers: ReadonlyArray<number> }

/** A float32 input or output; a string is the name of a dynamic dimension. */
export interface ValueInfo {
  readonly name: string
  readonly shape: ReadonlyArray<number | string>
}

export interface OnnxGraph {
  readonly operations: ReadonlyArray<Operation>
  readonly constants: ReadonlyArray<Constant>
  readonly input: ValueInfo
  readonly output: ValueInfo
}

/** Protobuf's limit for one message. Source: plant facts 3. */
const file_bytes_max = 2 ** 31 - 1

const ir_version = 8
const opset_version = 17
const type_float = 1
const type_int64 = 7

const encodeAttribute = (name: string, value: Attribute) => {
  const encoded_name = text(1, name)
  if (typeof value === "string") return concat(encoded_name, text(4, value), integer(20, 3))
  if (typeof value === "number") return concat(encoded_name, integer(3, value), integer(20, 2))
  if ("float" in value) return concat(encoded_name, float(2, value.float), integer(20, 1))
  return concat(encoded_name, ...value.map((item) => integer(8, item)), integer(20, 7))
}

const encodeOperation = ({ type, inputs, outputs, attributes }: Operation) =>
  message(
    1,
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, type),
    ...Object.entries(attributes).map(([name, value]) => message(5, encodeAttribute(name, value))),
  )

const encodeValueInfo = (field: number, { name, shape }: ValueInfo) => {
  const dims = shape.map((dim) =>
    message(1, typeof dim === "string" ? text(2, dim) : integer(1, dim)),
  )
  const tensor = concat(integer(1, type_float), message(2, ...dims))
  return message(field, text(1, name), message(2, message(1, tensor)))
}

interface EncodedConstant {
  /** Everything before the values, including the key and length. */
  readonly header: Uint8Array
  readonly bytes: number
  readonly parts: () => Iterable<Uint8Array>
}

const integerBytes = (values: ReadonlyArray<number>) =>
  new Uint8Array(BigInt64Array.from(values, BigInt).buffer)

const encodeConstant = (constant: Constant): EncodedConstant => {
  const is_float = "weight" in constant
  const shape = is_float ? constant.weight.shape : [constant.integers.length]
  const bytes = elementCount(shape) * (is_float ? 4 : 8)
  const fields = concat(
    ...shape.map((dim) => integer(1, dim)),
    integer(2, is_float ? type_float : type_int64),
    text(8, constant.name),
    lengthPrefix(9, bytes),
  )
  return {
    header: concat(lengthPrefix(5, fields.length + bytes), fields),
    bytes,
    parts: () => (is_float ? floatBytes(constant.weight) : [integerBytes(constant.integers)]),
  }
}

function* floatBytes({ parts }: Weight) {
  for (const { buffer, byteOffset, byteLength } of parts()) {
    yield new Uint8Array(buffer, byteOffset, byteLength)
  }
}

/** Writes the file. Throws a ModelError if it would be too large or a weight's length is wrong. */
export const writeOnnx = (path: string, graph: OnnxGraph) => {
  const constants = graph.constants.map(encodeConstant)
  const before = concat(...graph.operations.map(encodeOperation), text(2, "almanac"))
  const after = concat(encodeValueInfo(11, graph.input), encodeValueInfo(12, graph.output))
  const graph_bytes = constants.reduce(
    (sum, { header: head, bytes }) => sum + head.length + bytes,
    before.length + after.length,
  )
  if (graph_bytes > file_bytes_max) {
    reject(
      `The network has ${Math.round(graph_bytes / 2 ** 20)} MB of weights, and an ONNX file ` +
        "holds 2048: export ONNX with external data and set plant.model to it.",
    )
  }
  const file = openSync(path, "wx", 0o600)
  try {
    const write = (bytes: Uint8Array) => {
      for (let offset = 0; offset < bytes.length; ) offset += writeSync(file, bytes, offset)
    }
    write(concat(integer(1, ir_version), text(2, "almanac"), lengthPrefix(7, graph_bytes), before))
    for (const { header: head, bytes, parts } of constants) {
      write(head)
      let missing = bytes
      for (const part of parts()) {
        missing -= part.length
        write(part)
      }
      if (missing !== 0) reject("A weight's number of values does not match its shape.")
    }
    write(after)
    write(message(8, text(1, ""), integer(2, opset_version)))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
