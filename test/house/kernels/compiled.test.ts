/** The compiled kernels match their sources, because nothing compiles them at startup. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "../tree.ts"
import { compile, compiledPath, kernels } from "./compile.ts"

describe("the WebAssembly kernels (node test/house/kernels/compile.ts)", () => {
  it.each(kernels())("%s compiles to the committed bytes", async (source) => {
    const committed = readFileSync(join(root, compiledPath(source)))
    expect(Buffer.from(await compile(source)).equals(committed)).toBe(true)
  })

  it("each have a source", () => {
    const compiled = globSync("packages/*/**/*.wasm", { cwd: root })
    expect(compiled.toSorted()).toEqual(kernels().map(compiledPath).toSorted())
  })
})
