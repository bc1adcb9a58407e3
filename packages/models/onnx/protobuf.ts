/** As much of the protobuf wire format as writing an ONNX file takes. */

export const joined = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => Buffer.concat(parts)

/** A number of up to 64 bits; a negative one as its two's complement. */
export const varint = (value: number | bigint): Uint8Array => {
  const bytes: Array<number> = []
  let left = BigInt.asUintN(64, BigInt(value))
  do {
    const low = Number(left & 127n)
    left >>= 7n
    bytes.push(left === 0n ? low : low | 128)
  } while (left !== 0n)
  return Uint8Array.from(bytes)
}

const key = (field: number, wire: number) => varint((field << 3) | wire)

export const integer = (field: number, value: number | bigint) =>
  joined(key(field, 0), varint(value))

export const real = (field: number, value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return joined(key(field, 5), bytes)
}

/** What stands before `length` bytes of a field; they may follow from elsewhere. */
export const heading = (field: number, length: number) => joined(key(field, 2), varint(length))

export const message = (field: number, ...parts: ReadonlyArray<Uint8Array>) => {
  const body = joined(...parts)
  return joined(heading(field, body.length), body)
}

export const text = (field: number, value: string) => message(field, Buffer.from(value))
