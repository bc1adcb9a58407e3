/** The compile cache also works for threads. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const folder = mkdtempSync(join(tmpdir(), "almanac-compiled-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const launcher = JSON.stringify(join(root, "launcher/compile-cache.mjs"))
/** Loaded like the launcher does; if it were preloaded, the thread would run it too. */
const program = `
  import ${launcher}
  import { Worker } from "node:worker_threads"
  const code = 'import { parentPort } from "node:worker_threads";' +
    'import { getCompileCacheDir } from "node:module";' +
    'parentPort.postMessage(getCompileCacheDir() ?? "nowhere")'
  new Worker(code, { eval: true }).once("message", (where) => console.log(where))`

const keptBy = (more: Readonly<Record<string, string>>) => {
  const args = ["--input-type=module", "-e", program]
  const env = Object.assign({}, process.env, { NODE_COMPILE_CACHE: undefined }, more)
  return execFileSync(process.execPath, args, { encoding: "utf8", env }).trim()
}

describe("the compile cache", () => {
  it("is a thread's too", () => {
    const kept = keptBy({ ALMANAC_CACHE_DIR: folder })
    expect(kept.startsWith(join(folder, "compile/"))).toBe(true)
    expect(readdirSync(join(folder, "compile")).length).toBe(1)
  })

  it("stays where the environment says", () => {
    const other = join(folder, "other")
    const kept = keptBy({ ALMANAC_CACHE_DIR: folder, NODE_COMPILE_CACHE: other })
    expect(kept.startsWith(`${other}/`)).toBe(true)
  })
})
