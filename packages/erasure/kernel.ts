/** The loops of the erasure code: WebAssembly, written in `kernels/*.wat`. */
import { readFileSync } from "node:fs"

/** Bytes that one turn of a loop takes of each shard: a shard's length is a multiple of it. */
export const step_bytes = 64

/** Where `rebuild.wat` reads its tables and its list of addresses. */
export const tables_at = 0
export const list_at = 32
/** Addresses in the list, and the one of them that is 0 where two shards are lost. */
export const list_length = 8
export const list_optional = 3

/** What the kernels export; each number is an address or a count of bytes. */
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

/** The functions of `kernels/<name>.wasm` on this memory. */
const exportsOf = (name: "encode" | "rebuild", memory: WebAssembly.Memory) => {
  const bytes = readFileSync(new URL(`./kernels/${name}.wasm`, import.meta.url))
  return new WebAssembly.Instance(new WebAssembly.Module(bytes), { erasure: { memory } }).exports
}

export const erasureKernels = (memory: WebAssembly.Memory): ErasureKernels => {
  // The sources export these functions of numbers, and nothing else.
  const functions = { ...exportsOf("encode", memory), ...exportsOf("rebuild", memory) } as unknown
  return functions as ErasureKernels
}
