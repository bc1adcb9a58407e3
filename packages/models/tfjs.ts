/**
 * Reads a tfjs `model.json` in the layers format: a Keras configuration, and weights in one or more
 * shard files next to it, optionally quantized.
 *
 * Source: tensorflow/tfjs, io/types.ts and io_utils.ts.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { isRecord, type Json, listOf, readConfig } from "./keras/config.ts"
import { export_advice, reject } from "./model-error.ts"
import { type NamedWeight, type Network, weightFinder } from "./network.ts"
import {
  decode,
  elementCount,
  part_values,
  type ValueType,
  value_bytes,
  type Weight,
} from "./weight.ts"

const json_bytes_max = 64 * 2 ** 20
const files_max = 10_000

const types: Readonly<Record<string, ValueType>> = {
  float32: "float32",
  float16: "float16",
  int32: "int32",
  uint8: "uint8",
  uint16: "uint16",
}

const readManifest = (path: string): Json => {
  if (statSync(path).size > json_bytes_max) return reject("The model.json is larger than 64 MB.")
  const json: unknown = JSON.parse(readFileSync(path, "utf8"))
  if (!isRecord(json)) return reject("The model.json is not a tfjs model.")
  if (json.format === "graph-model") {
    return reject(
      "The model.json is a tfjs graph model, but only layers models can be read: " + export_advice,
    )
  }
  return json
}

/** Weight files must be next to the model. */
const weightFilePath = (model_path: string, name: unknown) => {
  if (typeof name !== "string" || basename(name) !== name || name === "..") {
    return reject("The model.json names a weight file that is not in its folder.")
  }
  return join(dirname(model_path), name)
}

/** The model.json and its weight files. Throws a ModelError. */
export const tfjsFiles = (path: string): ReadonlyArray<string> => {
  const manifest = listOf(readManifest(path).weightsManifest).filter(isRecord)
  const names = manifest.flatMap(({ paths }) => listOf(paths))
  if (names.length > files_max) return reject("The model.json names too many weight files.")
  return [path, ...names.map((name) => weightFilePath(path, name))]
}

interface Shard {
  readonly path: string
  readonly offset: number
  readonly bytes: number
}

/** Reads several files as one sequence of bytes. */
const concatenate = (paths: ReadonlyArray<string>) => {
  let bytes = 0
  const shards = paths.map((path): Shard => {
    const { size } = statSync(path)
    bytes += size
    return { path, offset: bytes - size, bytes: size }
  })
  const read = (start: number, length: number) => {
    if (start + length > bytes) return reject("The weight files of the model.json are truncated.")
    const into = Buffer.alloc(length)
    for (const shard of shards) {
      const from = Math.max(start, shard.offset)
      const until = Math.min(start + length, shard.offset + shard.bytes)
      if (from < until) {
        readShard(shard.path, into.subarray(from - start, until - start), from - shard.offset)
      }
    }
    return into
  }
  return { read, bytes }
}

const readShard = (path: string, into: Buffer, offset: number) => {
  const file = openSync(path, "r")
  try {
    if (fstatSync(file).size < offset + into.length) reject("A weight file is truncated.")
    for (let read = 0; read < into.length; ) {
      const more = readSync(file, into, read, into.length - read, offset + read)
      if (more === 0) reject("A weight file is truncated.")
      read += more
    }
  } finally {
    closeSync(file)
  }
}

interface Encoding {
  readonly type: ValueType
  readonly scale: number
  readonly minimum: number
}

const encodingOf = ({ dtype, quantization }: Json): Encoding => {
  const quantized = isRecord(quantization) ? quantization : {}
  const type_name = String(quantized.dtype ?? dtype)
  const type = Object.hasOwn(types, type_name) ? types[type_name] : undefined
  if (type === undefined) return reject(`The model.json has weights of the type ${type_name}.`)
  const { scale = 1, min = 0 } = quantized
  if (typeof scale !== "number" || typeof min !== "number") {
    return reject("The quantization of the model.json cannot be read.")
  }
  return { type, scale, minimum: min }
}

const shapeOf = ({ shape }: Json): ReadonlyArray<number> => {
  const dims = listOf(shape)
  if (!dims.every((side) => Number.isSafeInteger(side) && Number(side) >= 0)) {
    return reject("The model.json has a weight without a shape.")
  }
  return dims.map(Number)
}

const groupOf = (path: string, group: Json): ReadonlyArray<NamedWeight> => {
  const data = concatenate(listOf(group.paths).map((name) => weightFilePath(path, name)))
  let place = 0
  const named = listOf(group.weights)
    .filter(isRecord)
    .map((spec): NamedWeight => {
      const shape = shapeOf(spec)
      const { type, scale, minimum: lowest } = encodingOf(spec)
      const count = elementCount(shape)
      const first = place
      place += count * value_bytes[type]
      const weight: Weight = {
        shape,
        *parts() {
          for (let read = 0; read < count; read += part_values) {
            const part = Math.min(part_values, count - read)
            const bytes = data.read(first + read * value_bytes[type], part * value_bytes[type])
            const values = decode(bytes, type)
            yield scale === 1 && lowest === 0 ? values : values.map((v) => v * scale + lowest)
          }
        },
      }
      return { group: undefined, name: String(spec.name), weight: () => weight }
    })
  if (place !== data.bytes) {
    return reject("The weight files do not have the length given in model.json.")
  }
  return named
}

/** Reads the model.json at `path`. Throws a ModelError. */
export const readTfjs = (path: string): Network => {
  const json = readManifest(path)
  const topology = isRecord(json.modelTopology) ? json.modelTopology : undefined
  const configuration = topology?.model_config ?? topology
  if (configuration === undefined) return reject("The model.json contains no layers model of tfjs.")
  const model = readConfig(configuration)
  const groups = listOf(json.weightsManifest).filter(isRecord)
  const find = weightFinder(groups.flatMap((group) => groupOf(path, group)))
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
