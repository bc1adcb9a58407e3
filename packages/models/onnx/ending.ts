/**
 * What an `.onnx` says of what makes its output. Only the names and links of its operations are
 * read, never a weight. Source: onnx.proto (ModelProto, GraphProto, NodeProto).
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { shapers } from "../graph.ts"

/** Numbers of fields in onnx.proto. */
const graph_of_model = 7
const node_of_graph = 1
const input_of_node = 1
const output_of_node = 2
const type_of_node = 4

/** Before a field's bytes: its number and its length, ten bytes each at most. */
const head_bytes_max = 20

/** Operations that leave the numbers as they are, or nearly so. */
const passing = [
  ...shapers,
  ...["Squeeze", "Unsqueeze", "Cast", "Dropout", "QuantizeLinear", "DequantizeLinear"],
]

/** A field with bytes, by where they are in the file. */
interface Field {
  readonly number: number
  readonly start: number
  readonly end: number
}

const bytesAt = (file: number, start: number, length: number) => {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, start))
}

/** A number as protobuf writes it, and where the next byte is. */
const varintIn = (bytes: Buffer, from: number): readonly [value: number, next: number] => {
  let value = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    value += (byte & 127) * 2 ** (7 * (at - from))
    if (byte < 128) return [value, at + 1]
  }
  return [value, bytes.length]
}

/** The fields with bytes between two places of the file, as far as it is protobuf. */
function* fieldsOf(file: number, start: number, end: number): Generator<Field> {
  for (let at = start; at < end; ) {
    const head = bytesAt(file, at, Math.min(head_bytes_max, end - at))
    const [key, behind_key] = varintIn(head, 0)
    const [value, behind_value] = varintIn(head, behind_key)
    const wire = key % 8
    if (head.length === 0 || ![0, 1, 2, 5].includes(wire)) return
    if (wire === 2) {
      const [from, to] = [at + behind_value, at + behind_value + value]
      if (to > end) return
      yield { number: Math.floor(key / 8), start: from, end: to }
      at = to
    } else at += wire === 0 ? behind_value : behind_key + (wire === 1 ? 8 : 4)
  }
}

const textOf = (file: number, { start, end }: Field) =>
  bytesAt(file, start, end - start).toString("utf8")

/** An operation by what it is, what it takes first and what it makes first. */
const nodeIn = (file: number, { start, end }: Field) => {
  const texts = new Map<number, string>()
  for (const field of fieldsOf(file, start, end)) {
    if (![input_of_node, output_of_node, type_of_node].includes(field.number)) continue
    if (!texts.has(field.number)) texts.set(field.number, textOf(file, field))
  }
  const text = (field: number) => texts.get(field) ?? ""
  return { type: text(type_of_node), takes: text(input_of_node), makes: text(output_of_node) }
}

const nodesIn = (file: number) => {
  const fields = [...fieldsOf(file, 0, fstatSync(file).size)]
  return fields
    .filter(({ number }) => number === graph_of_model)
    .flatMap(({ start, end }) => [...fieldsOf(file, start, end)])
    .filter(({ number }) => number === node_of_graph)
    .map((field) => nodeIn(file, field))
}

/**
 * The type of the operation that makes this output, past those that only bring it into shape;
 * undefined where the file does not tell. It blocks its thread.
 */
export const onnxEnding = (path: string, output: string): string | undefined => {
  const file = openSync(path, "r")
  try {
    const makers = new Map(nodesIn(file).map((node) => [node.makes, node]))
    let maker = makers.get(output)
    // Each is passed once: a graph has no circle, and a damaged file may.
    while (maker !== undefined && passing.includes(maker.type)) {
      makers.delete(maker.makes)
      maker = makers.get(maker.takes)
    }
    return maker?.type
  } finally {
    closeSync(file)
  }
}
