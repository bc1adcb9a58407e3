/** The weights of a network, read piece by piece: the largest tensors are never held whole. */
import { unusable } from "./refusal.ts"

export interface Weight {
  readonly shape: ReadonlyArray<number>
  /** Its values in row-major order, in pieces of a few MB; each holds until the next is taken. */
  readonly parts: () => Iterable<Float32Array>
}

/** How the values lie in a file, little-endian. */
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

/** Values read at once: 4 MB as float32. */
export const part_values = 2 ** 20

/** Product of the sides; 1 of a scalar. */
export const countOf = (shape: ReadonlyArray<number>) =>
  shape.reduce((count, side) => count * side, 1)

/** All values of a small tensor. */
export const valuesOf = ({ shape, parts }: Weight): Float32Array => {
  const values = new Float32Array(countOf(shape))
  let place = 0
  for (const part of parts()) {
    if (place + part.length > values.length) unusable("A weight has more values than its shape.")
    values.set(part, place)
    place += part.length
  }
  if (place !== values.length) unusable("A weight has fewer values than its shape.")
  return values
}

export const weightOf = (
  values: ArrayLike<number>,
  shape: ReadonlyArray<number> = [values.length],
): Weight => ({ shape, parts: () => [Float32Array.from(values)] })

export const bytesOf: Readonly<Record<ValueType, number>> = {
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

/** The values of whole bytes; `bytes` may begin at any place of its buffer. */
export const decoded = (bytes: Uint8Array, type: ValueType): Float32Array => {
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : Uint8Array.from(bytes)
  const { buffer, byteOffset } = aligned
  const count = bytes.byteLength / bytesOf[type]
  switch (type) {
    case "float32":
      return new Float32Array(buffer, byteOffset, count)
    case "float64":
      return Float32Array.from(new Float64Array(buffer, byteOffset, count))
    case "float16":
      return Float32Array.from(new Float16Array(buffer, byteOffset, count))
    case "bfloat16":
      return brains(new Uint16Array(buffer, byteOffset, count))
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

/** bfloat16 is the upper half of a float32. */
const brains = (bits: Uint16Array) => {
  const wide = new Uint32Array(bits.length)
  for (const [index, value] of bits.entries()) wide[index] = value << 16
  return new Float32Array(wide.buffer)
}
