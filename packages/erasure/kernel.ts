/** Loads the kernels of the erasure code: WebAssembly, written in `kernels/*.wat`. */
import { readFileSync } from "node:fs"

/** Bytes of each shard in one iteration; shard lengths are multiples of it. */
export const step_bytes = 64

/** Where `rebuild.wat` reads its tables and its list of addresses. */
export const tables_at = 0
export const list_at = 32
/** Length of the list, and the entry that is 0 when two shards are lost. */
export const list_length = 8
export const list_optional = 3

/** The exports of the kernels; all numbers are addresses or byte counts. */
export interface ErasureKernels {
  readonly encode: (first: number, stride: number, shards: number, bytes: number) => void
  readonly xor: (target: number, place: number, end: number) => void
  readonly rebuild: (
    last: number,
    stride: number,
    shards: number,
    q: number,
    lost: number,
    second: number,
    bytes: number,
  ) => void
}

/** Instantiates `kernels/<name>.wasm` on this memory. */
const exportsOf = (name: "encode" | "rebuild", memory: WebAssembly.Memory) => {
  const bytes = readFileSync(new URL(`./kernels/${name}.wasm`, import.meta.url))
  return new WebAssembly.Instance(new WebAssembly.Module(bytes), { erasure: { memory } }).exports
}

export const erasureKernels = (memory: WebAssembly.Memory): ErasureKernels => {
  // The sources export exactly these functions of numbers.
  const functions = { ...exportsOf("encode", memory), ...exportsOf("rebuild", memory) } as unknown
  return functions as ErasureKernels
}
