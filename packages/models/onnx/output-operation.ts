/**
 * Finds the operation that computes an ONNX model's output. Reads only the nodes of the graph,
 * never a weight. Source: onnx.proto (ModelProto, GraphProto, NodeProto).
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { reshaping_operations } from "../graph-builder.ts"

/** Field numbers in onnx.proto. */
const graph_of_model = 7
const node_of_graph = 1
const input_of_node = 1
const output_of_node = 2
const type_of_node = 4

/** A field's key and length: two varints of at most ten bytes. */
const field_header_bytes_max = 20

/** Operations that change the values little or not at all. */
const pass_through_operations = [
  ...reshaping_operations,
  ...["Squeeze", "Unsqueeze", "Cast", "Dropout", "QuantizeLinear", "DequantizeLinear"],
]

/** A length-delimited field and its byte range in the file. */
interface Field {
  readonly number: number
  readonly start: number
  readonly end: number
}

const readAt = (file: number, start: number, length: number) => {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, start))
}

/** Decodes a varint and returns the offset after it. */
const readVarint = (bytes: Buffer, from: number): readonly [value: number, next: number] => {
  let value = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    value += (byte & 127) * 2 ** (7 * (at - from))
    if (byte < 128) return [value, at + 1]
  }
  return [value, bytes.length]
}

/** The length-delimited fields of a byte range. Stops at the first byte that is not protobuf. */
function* readFields(file: number, start: number, end: number): Generator<Field> {
  for (let at = start; at < end; ) {
    const header = readAt(file, at, Math.min(field_header_bytes_max, end - at))
    const [key, after_key] = readVarint(header, 0)
    const [value, after_value] = readVarint(header, after_key)
    const wire_type = key % 8
    if (header.length === 0 || ![0, 1, 2, 5].includes(wire_type)) return
    if (wire_type === 2) {
      const [from, to] = [at + after_value, at + after_value + value]
      if (to > end) return
      yield { number: Math.floor(key / 8), start: from, end: to }
      at = to
    } else at += wire_type === 0 ? after_value : after_key + (wire_type === 1 ? 8 : 4)
  }
}

const readText = (file: number, { start, end }: Field) =>
  readAt(file, start, end - start).toString("utf8")

/** A node's type, first input and first output. */
const readNode = (file: number, { start, end }: Field) => {
  const texts = new Map<number, string>()
  for (const field of readFields(file, start, end)) {
    if (![input_of_node, output_of_node, type_of_node].includes(field.number)) continue
    if (!texts.has(field.number)) texts.set(field.number, readText(file, field))
  }
  const text = (field: number) => texts.get(field) ?? ""
  return { type: text(type_of_node), input: text(input_of_node), output: text(output_of_node) }
}

const readNodes = (file: number) => {
  const fields = [...readFields(file, 0, fstatSync(file).size)]
  return fields
    .filter(({ number }) => number === graph_of_model)
    .flatMap(({ start, end }) => [...readFields(file, start, end)])
    .filter(({ number }) => number === node_of_graph)
    .map((field) => readNode(file, field))
}

/**
 * The type of the operation that computes this output, ignoring operations that pass values
 * through; undefined if there is none. Blocks its thread.
 */
export const outputOperation = (path: string, output: string): string | undefined => {
  const file = openSync(path, "r")
  try {
    const producers = new Map(readNodes(file).map((node) => [node.output, node]))
    let producer = producers.get(output)
    // Visit each node once: a damaged file may contain a cycle.
    while (producer !== undefined && pass_through_operations.includes(producer.type)) {
      producers.delete(producer.output)
      producer = producers.get(producer.input)
    }
    return producer?.type
  } finally {
    closeSync(file)
  }
}
