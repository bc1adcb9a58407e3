/** Loads the WebAssembly kernels, whose source is `kernels/*.wat`. */
import { readFileSync } from "node:fs"

/** All parameters are addresses or counts. */
type Kernel = (...numbers: ReadonlyArray<number>) => void

/** Compiles `kernels/<file>.wasm`; the result instantiates its functions on a memory. */
export const loadKernels = <Name extends string>(
  file: string,
): ((memory: WebAssembly.Memory) => Readonly<Record<Name, Kernel>>) => {
  const bytes = readFileSync(new URL(`./kernels/${file}.wasm`, import.meta.url))
  const compiled = new WebAssembly.Module(bytes)
  return (memory) => {
    const { exports } = new WebAssembly.Instance(compiled, { predictor: { memory } })
    // The source exports functions of numbers; the caller must name them as it does.
    return exports as Readonly<Record<Name, Kernel>>
  }
}
