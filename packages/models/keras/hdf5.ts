/** Reads attributes and tensors of an HDF5 file with h5wasm. Blocks its thread. */
import { Dataset, type Entity, File, Group, Module, ready } from "h5wasm/node"
import { reject } from "../model-error.ts"
import { decode, elementCount, part_values, type ValueType, type Weight } from "../weight.ts"

export interface Hdf5 {
  /** A string attribute of a group. */
  readonly text: (group: string, name: string) => string | undefined
  /** An attribute with a list of strings, which Keras splits if it is long. */
  readonly texts: (group: string, name: string) => ReadonlyArray<string>
  readonly has: (path: string) => boolean
  /** A tensor; `is_bfloat16` if the configuration says so. */
  readonly weight: (path: string, is_bfloat16?: boolean) => Weight | undefined
  readonly close: () => void
}

/** Attributes of 64 kB that one list of names is split into; enough for 10,000 layers. */
const pieces_max = 1000

// h5py writes strings as bytes.
const textOf = (value: unknown) =>
  value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value)

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return Array.isArray(value) ? value.map(textOf) : []
}

/** Opens a file. Throws a ModelError if it is not a complete HDF5 file. */
export const openHdf5 = async (path: string): Promise<Hdf5> => {
  await ready
  const file = new File(path, "r")
  if (file.file_id <= 0n) {
    return reject("The model file is damaged: it is not a complete HDF5 file.")
  }
  const get = (address: string): Entity | null => file.get(address === "" ? "/" : address)
  const attribute = (address: string, name: string): unknown => {
    const found = get(address)
    if (!(found instanceof Group || found instanceof Dataset)) return undefined
    return found.attrs[name]?.value ?? undefined
  }
  return {
    text: (group, name) => {
      const value = attribute(group, name)
      return value === undefined ? undefined : textsOf(value).join("") || textOf(value)
    },
    texts: (group, name) => {
      const whole = attribute(group, name)
      if (whole !== undefined) return textsOf(whole)
      const found: Array<string> = []
      for (let piece = 0; piece < pieces_max; piece++) {
        const part = attribute(group, `${name}${piece}`)
        if (part === undefined) break
        found.push(...textsOf(part))
      }
      return found
    },
    has: (path) => get(path) !== null,
    weight: (path, is_bfloat16 = false) => {
      const found = get(path)
      if (!(found instanceof Dataset)) return undefined
      return weightOf(found, is_bfloat16 || textOf(attribute(path, "dtype")) === "bfloat16")
    },
    close: () => void file.close(),
  }
}

const typeOf = ({ metadata, path }: Dataset, is_bfloat16: boolean): ValueType => {
  const { type, size, signed, littleEndian } = metadata
  const { H5T_FLOAT, H5T_INTEGER, H5T_OPAQUE } = Module.H5T_class_t
  // h5py does not support bfloat16 and writes opaque bytes.
  if (is_bfloat16 && type === H5T_OPAQUE.value && size === 2) return "bfloat16"
  const is_whole = type === H5T_INTEGER.value
  if (!littleEndian && size > 1) return reject(`The weight ${path} has its bytes in big-endian.`)
  if (type === H5T_FLOAT.value && size === 2) return is_bfloat16 ? "bfloat16" : "float16"
  if (type === H5T_FLOAT.value && size === 4) return "float32"
  if (type === H5T_FLOAT.value && size === 8) return "float64"
  if (is_whole && size === 1) return signed ? "int8" : "uint8"
  if (is_whole && size === 2) return signed ? "int16" : "uint16"
  if (is_whole && size === 4) return signed ? "int32" : "uint32"
  return reject(`The weight ${path} has an unsupported type.`)
}

const weightOf = (dataset: Dataset, is_brain: boolean): Weight => {
  const { shape, chunks } = dataset.metadata
  const dims = shape ?? []
  const type = typeOf(dataset, is_brain)
  const [rows = 1] = dims
  const row_values = Math.max(elementCount(dims.slice(1)), 1)
  // A multiple of the chunk, so that no chunk is decompressed twice.
  const [chunk_rows = 1] = chunks ?? []
  const wanted = Math.max(Math.floor(part_values / row_values), 1)
  const step = Math.max(Math.floor(wanted / chunk_rows), 1) * chunk_rows
  return {
    shape: dims,
    *parts() {
      const bytes = Math.min(step, rows) * row_values * dataset.metadata.size
      const path = Module._malloc(bytes)
      if (path === 0) return reject("There is not enough memory for the model's weights.")
      try {
        for (let first = 0; first < rows; first += step) {
          const count = Math.min(step, rows - first)
          yield decode(readRows(path, dataset, dims, first, count), type)
        }
      } finally {
        Module._free(path)
      }
    },
  }
}

/**
 * Reads rows into WebAssembly memory and returns a view of it, valid until the next read. Copies
 * would become garbage faster than it is collected, and h5wasm's own reader has no 16-bit floats.
 */
const readRows = (
  address: number,
  { file_id, path, metadata }: Dataset,
  dims: ReadonlyArray<number>,
  first: number,
  rows: number,
) => {
  const counts = dims.map((side, axis) => BigInt(axis === 0 ? rows : side))
  const offsets = dims.map((_, axis) => BigInt(axis === 0 ? first : 0))
  const strides = dims.map(() => 1n)
  const bytes = Number(counts.reduce((product, count) => product * count, 1n)) * metadata.size
  const status = Module.get_dataset_data(file_id, path, counts, offsets, strides, BigInt(address))
  if (status < 0) return reject(`The weight ${path} cannot be read: the file is damaged.`)
  return Module.HEAPU8.subarray(address, address + bytes)
}
