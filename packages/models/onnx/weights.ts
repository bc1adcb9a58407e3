/**
 * The files beside an `.onnx` that hold its weights, as PyTorch writes them. Source: onnx.proto,
 * TensorProto.external_data: pairs of a key and a value, of which `location` names a file.
 */
import { createReadStream } from "node:fs"
import { dirname, isAbsolute, join, normalize } from "node:path"
import { unusable } from "../refusal.ts"

/** Field 1, 8 bytes, "location"; then field 2, whose length is one byte, or two above 127. */
const mark = Buffer.from("\n\x08location\x12", "latin1")
const location_bytes_max = 255
const read_bytes = 2 ** 20

/** The text behind a mark; undefined where it is cut off. */
const textAt = (bytes: Buffer, at: number) => {
  const low = bytes[at] ?? 0
  const is_long = low > 127
  const length = is_long ? (low & 127) | ((bytes[at + 1] ?? 0) << 7) : low
  const start = at + (is_long ? 2 : 1)
  if (length === 0 || length > location_bytes_max) return undefined
  return bytes.length < start + length ? undefined : bytes.toString("utf8", start, start + length)
}

/** What the file names as the places of its weights, each once, in order. */
const locationsIn = async (path: string) => {
  const found = new Set<string>()
  let rest = Buffer.alloc(0)
  const look = (bytes: Buffer) => {
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
      const text = textAt(bytes, at + mark.length)
      if (text !== undefined) found.add(text)
    }
  }
  for await (const piece of createReadStream(path, { highWaterMark: read_bytes })) {
    // A stream without an encoding gives buffers.
    const bytes = Buffer.concat([rest, piece as Buffer])
    look(bytes)
    // One that the end of the piece cuts is whole with the next.
    rest = bytes.subarray(Math.max(0, bytes.length - mark.length - location_bytes_max - 2))
  }
  return [...found]
}

/**
 * Their paths, in the order in which the file names them; none where it holds its weights itself.
 * Throws a refusal where one is not in the model's folder.
 */
export const onnxWeightFiles = async (path: string): Promise<ReadonlyArray<string>> => {
  const names = await locationsIn(path)
  return names.map((name) => {
    if (isAbsolute(name) || normalize(name).startsWith("..")) {
      return unusable(`The ONNX model's weights are in ${name}, which is not in its folder.`)
    }
    return join(dirname(path), name)
  })
}
