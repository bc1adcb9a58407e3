/**
 * Compiles the WebAssembly kernels: run `node test/house/kernels/compile.ts` after a `.wat`
 * changes. The compiled file is committed next to its source, so that a server needs no compiler;
 * `compiled.test.ts` compiles each source again and compares.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import load from "wabt"
import { root } from "../tree.ts"

/** The sources, relative to the root. */
export const kernels = (): ReadonlyArray<string> =>
  globSync("packages/*/kernels/*.wat", { cwd: root }).toSorted()

/** The path of a source's compiled file. */
export const compiledPath = (source: string): string => source.replace(/\.wat$/, ".wasm")

/** The compiled bytes of a source. */
export const compile = async (source: string): Promise<Uint8Array> => {
  const wabt = await load()
  const text = readFileSync(join(root, source), "utf8")
  const parsed = wabt.parseWat(source, text, { relaxed_simd: true })
  try {
    return parsed.toBinary({}).buffer
  } finally {
    parsed.destroy()
  }
}

if (import.meta.main) {
  for (const source of kernels()) {
    writeFileSync(join(root, compiledPath(source)), await compile(source))
  }
}
