/** Weights of a network, read in parts so that large tensors are never in memory as a whole. */
import { reject } from "./model-error.ts"

export interface Weight {
  readonly shape: ReadonlyArray<number>
  /** Values in row-major order, a few MB each; a part is valid until the next one is read. */
  readonly parts: () => Iterable<Float32Array>
}

/** The types of stored values, all little-endian. */
export type ValueType =
  | "float16"
  | "bfloat16"
  | "float32"
  | "float64"
  | "int8"
  | "uint8"
  | "int16"
  | "uint16"
  | "int32"
  | "uint32"

/** Values of one part: 4 MB as float32. */
export const part_values = 2 ** 20

/** The product of the dimensions; 1 for a scalar. */
export const elementCount = (shape: ReadonlyArray<number>) =>
  shape.reduce((count, side) => count * side, 1)

/** Reads all values; for small tensors. */
export const readValues = ({ shape, parts }: Weight): Float32Array => {
  const values = new Float32Array(elementCount(shape))
  let offset = 0
  for (const part of parts()) {
    if (offset + part.length > values.length) reject("A weight has more values than its shape.")
    values.set(part, offset)
    offset += part.length
  }
  if (offset !== values.length) reject("A weight has fewer values than its shape.")
  return values
}

export const weightOf = (
  values: ArrayLike<number>,
  shape: ReadonlyArray<number> = [values.length],
): Weight => ({ shape, parts: () => [Float32Array.from(values)] })

export const value_bytes: Readonly<Record<ValueType, number>> = {
  float16: 2,
  bfloat16: 2,
  float32: 4,
  float64: 8,
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
}

/** Decodes stored values; `bytes` need not be aligned. */
export const decode = (bytes: Uint8Array, type: ValueType): Float32Array => {
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : Uint8Array.from(bytes)
  const { buffer, byteOffset } = aligned
  const count = bytes.byteLength / value_bytes[type]
  switch (type) {
    case "float32":
      return new Float32Array(buffer, byteOffset, count)
    case "float64":
      return Float32Array.from(new Float64Array(buffer, byteOffset, count))
    case "float16":
      return Float32Array.from(new Float16Array(buffer, byteOffset, count))
    case "bfloat16":
      return fromBfloat16(new Uint16Array(buffer, byteOffset, count))
    case "int8":
      return Float32Array.from(new Int8Array(buffer, byteOffset, count))
    case "uint8":
      return Float32Array.from(new Uint8Array(buffer, byteOffset, count))
    case "int16":
      return Float32Array.from(new Int16Array(buffer, byteOffset, count))
    case "uint16":
      return Float32Array.from(new Uint16Array(buffer, byteOffset, count))
    case "int32":
      return Float32Array.from(new Int32Array(buffer, byteOffset, count))
    case "uint32":
      return Float32Array.from(new Uint32Array(buffer, byteOffset, count))
  }
}

/** A bfloat16 is the upper half of a float32. */
const fromBfloat16 = (bits: Uint16Array) => {
  const wide = new Uint32Array(bits.length)
  for (const [index, value] of bits.entries()) wide[index] = value << 16
  return new Float32Array(wide.buffer)
}
