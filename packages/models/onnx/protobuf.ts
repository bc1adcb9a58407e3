/** The part of the protobuf wire format that an ONNX writer needs. */

export const concat = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => Buffer.concat(parts)

/** Encodes up to 64 bits; a negative number as its two's complement. */
export const varint = (value: number | bigint): Uint8Array => {
  const bytes: Array<number> = []
  let rest = BigInt.asUintN(64, BigInt(value))
  do {
    const low = Number(rest & 127n)
    rest >>= 7n
    bytes.push(rest === 0n ? low : low | 128)
  } while (rest !== 0n)
  return Uint8Array.from(bytes)
}

const key = (field: number, wire: number) => varint((field << 3) | wire)

export const integer = (field: number, value: number | bigint) =>
  concat(key(field, 0), varint(value))

export const float = (field: number, value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return concat(key(field, 5), bytes)
}

/** The key and length of a field whose `length` bytes are written separately. */
export const lengthPrefix = (field: number, length: number) => concat(key(field, 2), varint(length))

export const message = (field: number, ...parts: ReadonlyArray<Uint8Array>) => {
  const body = concat(...parts)
  return concat(lengthPrefix(field, body.length), body)
}

export const text = (field: number, value: string) => message(field, Buffer.from(value))
