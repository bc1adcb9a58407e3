/** The predictor's kernels: WebAssembly, written in `kernels/*.wat`. */
import { readFileSync } from "node:fs"

/** All numbers are addresses or counts. */
type Kernel = (...numbers: ReadonlyArray<number>) => void

/** Compiles `kernels/<file>.wasm` once, and instantiates its functions on a memory. */
export const kernelsOf = <Name extends string>(
  file: string,
): ((memory: WebAssembly.Memory) => Readonly<Record<Name, Kernel>>) => {
  const bytes = readFileSync(new URL(`./kernels/${file}.wasm`, import.meta.url))
  const compiled = new WebAssembly.Module(bytes)
  return (memory) => {
    const { exports } = new WebAssembly.Instance(compiled, { predictor: { memory } })
    // Each source exports functions of numbers alone; who names them keeps to its source.
    return exports as Readonly<Record<Name, Kernel>>
  }
}
