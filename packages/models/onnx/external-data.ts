/**
 * Finds the external data files of an `.onnx`, which PyTorch uses for weights. Source: onnx.proto,
 * TensorProto.external_data: key-value pairs, of which `location` names a file.
 */
import { createReadStream } from "node:fs"
import { dirname, isAbsolute, join, normalize } from "node:path"
import { reject } from "../model-error.ts"

/**
 * Field 1, 8 bytes, "location", then the key of field 2. Its length is a varint of 1 or 2 bytes.
 */
const location_key = Buffer.from("\n\x08location\x12", "latin1")
const location_bytes_max = 255
const read_bytes = 2 ** 20

/** The value after the key; undefined if it is truncated. */
const readLocation = (bytes: Buffer, at: number) => {
  const low = bytes[at] ?? 0
  const is_long = low > 127
  const length = is_long ? (low & 127) | ((bytes[at + 1] ?? 0) << 7) : low
  const start = at + (is_long ? 2 : 1)
  if (length === 0 || length > location_bytes_max) return undefined
  return bytes.length < start + length ? undefined : bytes.toString("utf8", start, start + length)
}

/** The distinct locations in the file, in order. */
const readLocations = async (path: string) => {
  const found = new Set<string>()
  let rest = Buffer.alloc(0)
  const scan = (bytes: Buffer) => {
    for (let at = bytes.indexOf(location_key); at >= 0; at = bytes.indexOf(location_key, at + 1)) {
      const text = readLocation(bytes, at + location_key.length)
      if (text !== undefined) found.add(text)
    }
  }
  for await (const chunk of createReadStream(path, { highWaterMark: read_bytes })) {
    // A stream without an encoding yields buffers.
    const bytes = Buffer.concat([rest, chunk as Buffer])
    scan(bytes)
    // A match that spans two chunks is found with the next one.
    rest = bytes.subarray(Math.max(0, bytes.length - location_key.length - location_bytes_max - 2))
  }
  return [...found]
}

/**
 * The paths of the external data files, in the order of the file. Throws a ModelError if one is
 * outside the model's folder.
 */
export const externalDataFiles = async (path: string): Promise<ReadonlyArray<string>> => {
  const names = await readLocations(path)
  return names.map((name) => {
    if (isAbsolute(name) || normalize(name).startsWith("..")) {
      return reject(`The ONNX model's weights are in ${name}, which is outside its folder.`)
    }
    return join(dirname(path), name)
  })
}
