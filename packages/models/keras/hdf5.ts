/** An HDF5 file, read with h5wasm: attributes, and tensors piece by piece. It blocks its thread. */
import { Dataset, type Entity, File, Group, Module, ready } from "h5wasm/node"
import { unusable } from "../refusal.ts"
import { countOf, decoded, part_values, type ValueType, type Weight } from "../weight.ts"

export interface Hdf5 {
  /** A text attribute of a group; absent where there is none. */
  readonly text: (group: string, name: string) => string | undefined
  /** A list of texts, which Keras splits where it is long; empty where there is none. */
  readonly texts: (group: string, name: string) => ReadonlyArray<string>
  readonly has: (path: string) => boolean
  /** A tensor; `is_brain` where the configuration says bfloat16. */
  readonly weight: (path: string, is_brain?: boolean) => Weight | undefined
  readonly close: () => void
}

/** Pieces that a long list of names is split into: 64 kB each, of a network's ten thousand. */
const pieces_max = 1000

// h5py writes texts as bytes.
const textOf = (value: unknown) =>
  value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value)

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return Array.isArray(value) ? value.map(textOf) : []
}

/** Opens a file. Throws a refusal where it is no HDF5, or no whole one. */
export const openHdf5 = async (path: string): Promise<Hdf5> => {
  await ready
  const file = new File(path, "r")
  if (file.file_id <= 0n) {
    return unusable("The model file is damaged: it is no whole HDF5 file.")
  }
  const at = (place: string): Entity | null => file.get(place === "" ? "/" : place)
  const attribute = (place: string, name: string): unknown => {
    const found = at(place)
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
        const some = attribute(group, `${name}${piece}`)
        if (some === undefined) break
        found.push(...textsOf(some))
      }
      return found
    },
    has: (path) => at(path) !== null,
    weight: (path, is_brain = false) => {
      const found = at(path)
      if (!(found instanceof Dataset)) return undefined
      return weightOf(found, is_brain || textOf(attribute(path, "dtype")) === "bfloat16")
    },
    close: () => void file.close(),
  }
}

const typeOf = ({ metadata, path }: Dataset, is_brain: boolean): ValueType => {
  const { type, size, signed, littleEndian } = metadata
  const { H5T_FLOAT, H5T_INTEGER, H5T_OPAQUE } = Module.H5T_class_t
  // h5py knows no bfloat16, and writes its bytes.
  if (is_brain && type === H5T_OPAQUE.value && size === 2) return "bfloat16"
  const is_whole = type === H5T_INTEGER.value
  if (!littleEndian && size > 1) return unusable(`The weight ${path} has its bytes in big-endian.`)
  if (type === H5T_FLOAT.value && size === 2) return is_brain ? "bfloat16" : "float16"
  if (type === H5T_FLOAT.value && size === 4) return "float32"
  if (type === H5T_FLOAT.value && size === 8) return "float64"
  if (is_whole && size === 1) return signed ? "int8" : "uint8"
  if (is_whole && size === 2) return signed ? "int16" : "uint16"
  if (is_whole && size === 4) return signed ? "int32" : "uint32"
  return unusable(`The weight ${path} is of a type that is not read.`)
}

const weightOf = (dataset: Dataset, is_brain: boolean): Weight => {
  const { shape, chunks } = dataset.metadata
  const sides = shape ?? []
  const type = typeOf(dataset, is_brain)
  const [rows = 1] = sides
  const row_values = Math.max(countOf(sides.slice(1)), 1)
  // A whole number of chunks, so that none is unpacked twice.
  const [chunk_rows = 1] = chunks ?? []
  const wanted = Math.max(Math.floor(part_values / row_values), 1)
  const step = Math.max(Math.floor(wanted / chunk_rows), 1) * chunk_rows
  return {
    shape: sides,
    *parts() {
      const bytes = Math.min(step, rows) * row_values * dataset.metadata.size
      const place = Module._malloc(bytes)
      if (place === 0) return unusable("There is not enough memory for the model's weights.")
      try {
        for (let first = 0; first < rows; first += step) {
          const count = Math.min(step, rows - first)
          yield decoded(rowsAt(place, dataset, sides, first, count), type)
        }
      } finally {
        Module._free(place)
      }
    },
  }
}

/**
 * Its rows where WebAssembly has them, until the next are asked for: a copy of each piece would be
 * garbage faster than it is collected. h5wasm's own way copies, and knows no 16-bit floats.
 */
const rowsAt = (
  place: number,
  { file_id, path, metadata }: Dataset,
  sides: ReadonlyArray<number>,
  first: number,
  rows: number,
) => {
  const counts = sides.map((side, axis) => BigInt(axis === 0 ? rows : side))
  const offsets = sides.map((_, axis) => BigInt(axis === 0 ? first : 0))
  const strides = sides.map(() => 1n)
  const bytes = Number(counts.reduce((product, count) => product * count, 1n)) * metadata.size
  const status = Module.get_dataset_data(file_id, path, counts, offsets, strides, BigInt(place))
  if (status < 0) return unusable(`The weight ${path} cannot be read: the file is damaged.`)
  return Module.HEAPU8.subarray(place, place + bytes)
}
