/**
 * Reads a tfjs `model.json` of the layers format: the configuration as Keras has it, and weights in
 * files beside it, in one row, perhaps quantized.
 *
 * Source: tensorflow/tfjs, io/types.ts and io_utils.ts.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { isRecord, type Json, listOf, readConfig } from "./keras/config.ts"
import { byName, type NamedWeight, type Network } from "./network.ts"
import { export_onnx, unusable } from "./refusal.ts"
import { bytesOf, countOf, decoded, part_values, type ValueType, type Weight } from "./weight.ts"

const json_bytes_max = 64 * 2 ** 20
const files_max = 10_000

const types: Readonly<Record<string, ValueType>> = {
  float32: "float32",
  float16: "float16",
  int32: "int32",
  uint8: "uint8",
  uint16: "uint16",
}

const parsed = (path: string): Json => {
  if (statSync(path).size > json_bytes_max) return unusable("The model.json has more than 64 MB.")
  const json: unknown = JSON.parse(readFileSync(path, "utf8"))
  if (!isRecord(json)) return unusable("The model.json is not what tfjs writes.")
  if (json.format === "graph-model") {
    return unusable(
      "The model.json is a graph model of tfjs, and only a layers model can be read: " +
        export_onnx,
    )
  }
  return json
}

/** A weight's file stands beside the model, never elsewhere. */
const fileOf = (model_path: string, name: unknown) => {
  if (typeof name !== "string" || basename(name) !== name || name === "..") {
    return unusable("The model.json names a weight file that is not beside it.")
  }
  return join(dirname(model_path), name)
}

/** The files that belong to a model, itself first. Throws a refusal. */
export const tfjsFiles = (path: string): ReadonlyArray<string> => {
  const manifest = listOf(parsed(path).weightsManifest).filter(isRecord)
  const names = manifest.flatMap(({ paths }) => listOf(paths))
  if (names.length > files_max) return unusable("The model.json names too many weight files.")
  return [path, ...names.map((name) => fileOf(path, name))]
}

interface Shard {
  readonly path: string
  readonly first: number
  readonly bytes: number
}

/** Bytes of files in one row. */
const rowOf = (paths: ReadonlyArray<string>) => {
  let bytes = 0
  const shards = paths.map((path): Shard => {
    const { size } = statSync(path)
    bytes += size
    return { path, first: bytes - size, bytes: size }
  })
  const read = (first: number, length: number) => {
    if (first + length > bytes) return unusable("The weight files of the model.json are cut off.")
    const into = Buffer.alloc(length)
    for (const shard of shards) {
      const from = Math.max(first, shard.first)
      const until = Math.min(first + length, shard.first + shard.bytes)
      if (from < until) {
        readShard(shard.path, into.subarray(from - first, until - first), from - shard.first)
      }
    }
    return into
  }
  return { read, bytes }
}

const readShard = (path: string, into: Buffer, place: number) => {
  const file = openSync(path, "r")
  try {
    if (fstatSync(file).size < place + into.length) unusable("A weight file is cut off.")
    for (let read = 0; read < into.length; ) {
      const more = readSync(file, into, read, into.length - read, place + read)
      if (more === 0) unusable("A weight file is cut off.")
      read += more
    }
  } finally {
    closeSync(file)
  }
}

interface Stored {
  readonly type: ValueType
  readonly scale: number
  readonly lowest: number
}

const storedOf = ({ dtype, quantization }: Json): Stored => {
  const packed = isRecord(quantization) ? quantization : {}
  const named = String(packed.dtype ?? dtype)
  const type = Object.hasOwn(types, named) ? types[named] : undefined
  if (type === undefined) return unusable(`The model.json has weights of the type ${named}.`)
  const { scale = 1, min = 0 } = packed
  if (typeof scale !== "number" || typeof min !== "number") {
    return unusable("The quantization of the model.json cannot be read.")
  }
  return { type, scale, lowest: min }
}

const shapeOf = ({ shape }: Json): ReadonlyArray<number> => {
  const sides = listOf(shape)
  if (!sides.every((side) => Number.isSafeInteger(side) && Number(side) >= 0)) {
    return unusable("The model.json has a weight without a shape.")
  }
  return sides.map(Number)
}

const groupOf = (path: string, group: Json): ReadonlyArray<NamedWeight> => {
  const row = rowOf(listOf(group.paths).map((name) => fileOf(path, name)))
  let place = 0
  const named = listOf(group.weights)
    .filter(isRecord)
    .map((about): NamedWeight => {
      const shape = shapeOf(about)
      const { type, scale, lowest } = storedOf(about)
      const count = countOf(shape)
      const first = place
      place += count * bytesOf[type]
      const weight: Weight = {
        shape,
        *parts() {
          for (let read = 0; read < count; read += part_values) {
            const some = Math.min(part_values, count - read)
            const bytes = row.read(first + read * bytesOf[type], some * bytesOf[type])
            const values = decoded(bytes, type)
            yield scale === 1 && lowest === 0 ? values : values.map((v) => v * scale + lowest)
          }
        },
      }
      return { group: undefined, name: String(about.name), weight: () => weight }
    })
  if (place !== row.bytes) {
    return unusable("The weight files of the model.json have another length than it says.")
  }
  return named
}

/** Reads the model.json at `path`. Throws a refusal. */
export const readTfjs = (path: string): Network => {
  const json = parsed(path)
  const topology = isRecord(json.modelTopology) ? json.modelTopology : undefined
  const configuration = topology?.model_config ?? topology
  if (configuration === undefined) return unusable("The model.json holds no layers model of tfjs.")
  const model = readConfig(configuration)
  const groups = listOf(json.weightsManifest).filter(isRecord)
  const find = byName(groups.flatMap((group) => groupOf(path, group)))
  return {
    model,
    is_keras_3: /^[3-9]/.test(String(topology?.keras_version)),
    weight: (layer, ...names) => {
      for (const name of names) {
        const found = find(layer, name)
        if (found !== undefined) return found
      }
      return undefined
    },
    close: () => undefined,
  }
}
